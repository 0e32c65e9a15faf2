import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { MANAGER_FLAGS } from './flags.ts';
import type { Flag } from './flags.ts';

const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');

/** The cells of the page's rows that are about a flag, by the flag's name; the groups' headings too. */
function documented(): Map<string, { cells: string[]; group: string }> {
  const found = new Map<string, { cells: string[]; group: string }>();
  let group = '';
  for (const line of page.split('\n')) {
    group = /^## (.*)$/.exec(line)?.[1] ?? group;
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
    const name = /^`--([\w-]+)`$/.exec(cells[1] ?? '')?.[1];
    if (name !== undefined) found.set(name, { cells: cells.slice(2, -1), group });
  }
  return found;
}

function expected(flag: Flag): string[] {
  if (flag.ignored !== undefined) return [flag.ignored];
  return [flag.default === '' ? '' : `\`${String(flag.default)}\``, flag.about];
}

describe('docs/configuration.md', () => {
  const rows = documented();

  it.each(MANAGER_FLAGS.map((flag) => [flag.name, flag] as const))('has --%s as it is', (name, flag) => {
    expect(rows.get(name)).toEqual({ cells: expected(flag), group: flag.group.replace(/:$/, '') });
  });

  it('has no flag that is not there', () => {
    expect([...rows.keys()].sort()).toEqual(MANAGER_FLAGS.map(({ name }) => name).sort());
  });
});
