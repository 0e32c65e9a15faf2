import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Bell } from './bell.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

function waiting(bell: Bell, signal = new AbortController().signal): { done: boolean } {
  const state = { done: false };
  bell.wait(10_000, signal).then(
    () => (state.done = true),
    () => undefined,
  );
  return state;
}

it('a ring ends the wait once it is quiet', async () => {
  const bell = new Bell();
  const state = waiting(bell);
  await vi.advanceTimersByTimeAsync(5_000);
  bell.ring();
  await vi.advanceTimersByTimeAsync(60);
  bell.ring();
  await vi.advanceTimersByTimeAsync(60);
  expect(state.done).toBe(false);
  await vi.advanceTimersByTimeAsync(150);
  expect(state.done).toBe(true);
});

it('rings without end are listened to for a second', async () => {
  const bell = new Bell();
  const state = waiting(bell);
  for (let i = 0; i < 50 && !state.done; i++) {
    bell.ring();
    await vi.advanceTimersByTimeAsync(50);
  }
  expect(state.done).toBe(true);
});

it('a ring while nobody waits is not lost, and counts once', async () => {
  const bell = new Bell();
  bell.ring();
  const first = waiting(bell);
  await vi.advanceTimersByTimeAsync(200);
  expect(first.done).toBe(true);
  const second = waiting(bell);
  await vi.advanceTimersByTimeAsync(9_999);
  expect(second.done).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(second.done).toBe(true);
});

it('an abort ends the wait at once', async () => {
  const end = new AbortController();
  const state = waiting(new Bell(), end.signal);
  await vi.advanceTimersByTimeAsync(1);
  end.abort();
  await vi.advanceTimersByTimeAsync(0);
  expect(state.done).toBe(true);
});
