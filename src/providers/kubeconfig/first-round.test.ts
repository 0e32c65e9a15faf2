import { expect, it } from 'vitest';
import { FirstRound } from './first-round.ts';

function round(): { round: FirstRound; over: () => number } {
  let over = 0;
  return { round: new FirstRound(() => (over += 1)), over: () => over };
}

it('is over when all that was there at the start is done, once', () => {
  const { round: first, over } = round();
  first.done('before');
  first.begin(['a', 'b']);
  first.done('a');
  first.done('a');
  first.done('later');
  expect(over()).toBe(0);
  first.done('b');
  first.done('b');
  expect(over()).toBe(1);
});

it('is over at once when nothing was there', () => {
  const { round: first, over } = round();
  first.begin([]);
  expect(over()).toBe(1);
});
