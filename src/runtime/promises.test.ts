import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const PAGE = readFileSync(join(ROOT, 'docs/promises.md'), 'utf8');
const ROWS = [...PAGE.matchAll(/^\| (.+?) +\| `(\S+)`: (.+?) +\|$/gm)].map(
  ([, promise = '', file = '', test = '']) => [promise, file, test] as const,
);

it('the page of promises has rows', () => {
  expect(ROWS.length).toBeGreaterThan(40);
});

it.each(ROWS)('"%s" is held by a test of %s', (_, file, test) => {
  expect(readFileSync(join(ROOT, file), 'utf8')).toContain(test);
});
