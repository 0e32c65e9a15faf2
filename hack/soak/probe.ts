/**
 * Loaded into the manager before it starts (NODE_OPTIONS=--import). On SIGUSR2 it collects garbage and writes what is
 * left to the file that SOAK_PROBE names: what a heap holds is known only after a collection.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const file = process.env['SOAK_PROBE'];
if (file !== undefined) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  process.on('SIGUSR2', () => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    const resources: Record<string, number> = {};
    for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
    writeFileSync(`${file}.new`, JSON.stringify({ heapUsed, external, resources }));
    renameSync(`${file}.new`, file);
  });
}
