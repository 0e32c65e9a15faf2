import { expect, it, vi } from 'vitest';
import { watchMemory } from './process-memory.ts';

const inLinux = process.platform === 'linux';

it('a process that holds more than its limit is told once; one that does not is not', async () => {
  const exceeded = vi.fn();
  const fine = vi.fn();
  const ends = [watchMemory(process.pid, 1024, exceeded), watchMemory(process.pid, 2 ** 50, fine)];
  if (inLinux) await expect.poll(() => exceeded.mock.calls.length).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 80));
  for (const end of ends) end();
  expect(exceeded.mock.calls).toHaveLength(inLinux ? 1 : 0);
  expect(fine).not.toHaveBeenCalled();
});

it('a watch that has ended tells nothing', async () => {
  const exceeded = vi.fn();
  watchMemory(process.pid, 1024, exceeded)();
  await new Promise((resolve) => setTimeout(resolve, 80));
  expect(exceeded).not.toHaveBeenCalled();
});
