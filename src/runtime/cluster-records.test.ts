import { expect, it } from 'vitest';
import { clusterName } from './cluster-name.ts';
import { RecordBook } from './cluster-records.ts';

const [A, B] = [clusterName('a'), clusterName('b')];

it('tells what changed, once, also to those who come late', () => {
  const book = new RecordBook(() => undefined);
  const told: string[] = [];
  book.put(A, 'files', { labels: { x: '1' } });
  const stop = book.listen((name, record) => told.push(`${name} ${record?.labels['x'] ?? 'gone'}`));
  book.put(A, 'files', { labels: { x: '1' } });
  book.put(A, 'files', { labels: { x: '2' } });
  // A declaration that says nothing.
  book.put(A, 'files', undefined);
  book.put(B, 'files', undefined);
  book.remove(A);
  book.remove(A);
  expect(told).toEqual(['a 1', 'a 2', 'b gone', 'a gone']);
  expect(book.get(B)).toEqual({ name: B, provider: 'files', labels: {} });
  stop();
  book.remove(B);
  expect(told).toHaveLength(4);
  expect(book.list()).toEqual([]);
});

it('a listener that throws keeps no other from being told', () => {
  const errors: unknown[] = [];
  const book = new RecordBook((name, error) => errors.push(`${name} ${String(error)}`));
  const told: string[] = [];
  book.listen(() => {
    throw new Error('no');
  });
  book.listen((name) => told.push(name));
  book.put(A, 'files', {});
  expect(told).toEqual(['a']);
  expect(errors).toEqual(['a Error: no']);
});
