import { join } from 'node:path';
import { runProgram } from '../../test/support/index.ts';

/** Bytes of heap that one tracked object takes, names included; measured in a process of its own, which can collect its garbage. */
export async function bytesPerObject(): Promise<number> {
  const output = await runProgram(process.execPath, ['--expose-gc', join(import.meta.dirname, 'memory.ts')]).catch(
    (error: unknown) => String((error as { stdout?: string }).stdout ?? error),
  );
  const bytes = Number(/(\d+) bytes per object/.exec(output)?.[1]);
  if (!Number.isFinite(bytes)) throw new Error(`bench/drift/memory.ts said: ${output}`);
  return bytes;
}
