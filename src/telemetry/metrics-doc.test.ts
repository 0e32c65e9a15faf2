import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const NAME = /(?:capstan|controller_runtime|workqueue|leader_election|process)_[a-z_]+/;

/** The names that the sources make metrics of. */
function made(): string[] {
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
  const sources = files.filter((file) => file.endsWith('.ts') && !/\.(test|test-support)\.ts$/.test(file));
  const literal = new RegExp(`'(${NAME.source})'`, 'g');
  return sources.flatMap((file) =>
    [...readFileSync(join(ROOT, 'src', file), 'utf8').matchAll(literal)].map(([, name = '']) => name),
  );
}

describe('metrics', () => {
  const names = [...new Set(made())].sort();

  it('have one line each in docs/metrics.md, and nothing else has', () => {
    const page = readFileSync(join(ROOT, 'docs/metrics.md'), 'utf8');
    const lines = [...page.matchAll(new RegExp(`^\\| \`(${NAME.source})\``, 'gm'))].map(([, name = '']) => name);
    expect(names.length).toBeGreaterThan(30);
    expect(lines.sort()).toEqual(names);
  });

  it('that the dashboard asks for are there', () => {
    const { panels } = JSON.parse(readFileSync(join(ROOT, 'deploy/grafana-dashboard.json'), 'utf8')) as {
      panels: { targets?: { expr: string }[] }[];
    };
    const asked = panels.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => [...expr.matchAll(new RegExp(NAME, 'g'))].map(([name]) => name)),
    );
    expect(asked.length).toBeGreaterThan(20);
    const series = new Set(names.flatMap((name) => [name, `${name}_bucket`, `${name}_sum`, `${name}_count`]));
    expect(asked.filter((name) => !series.has(name))).toEqual([]);
  });
});
