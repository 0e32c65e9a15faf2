/**
 * `npm run examples`: what is in examples/, as a user has it: a folder of its own, with the packed package installed.
 * Each is compiled against the published types and its tests are run; anything that fails ends with exit code 1.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..');
const LIMIT_MS = 300_000;
const run = promisify(execFile);

async function main(): Promise<number> {
  const work = await mkdtemp(join(tmpdir(), 'capstan-examples-'));
  try {
    await install(join(work, 'node_modules'));
    const passed: boolean[] = [];
    for (const name of await readdir(join(ROOT, 'examples'))) {
      const folder = join(work, name);
      await cp(join(ROOT, 'examples', name), folder, { recursive: true });
      passed.push(await passes(name, 'types', folder), await passes(name, 'test', folder));
    }
    return passed.every(Boolean) ? 0 : 1;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** The packed package beside what it and the examples depend on: no registry is asked. */
async function install(modules: string): Promise<void> {
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', dirname(modules)], {
    cwd: ROOT,
    timeout: LIMIT_MS,
    maxBuffer: 64 << 20,
  });
  const [packed] = JSON.parse(stdout) as { filename: string }[];
  if (packed === undefined) throw new Error('npm pack made nothing');
  await mkdir(modules, { recursive: true });
  await run('tar', ['-xzf', join(dirname(modules), packed.filename), '-C', modules], { timeout: LIMIT_MS });
  // What npm packs lies in a folder named `package`.
  await cp(join(modules, 'package'), join(modules, 'capstan'), { recursive: true });
  for (const entry of await readdir(join(ROOT, 'node_modules'))) {
    if (entry !== 'capstan') await symlink(join(ROOT, 'node_modules', entry), join(modules, entry));
  }
}

async function passes(name: string, script: string, cwd: string): Promise<boolean> {
  const started = performance.now();
  try {
    await run('npm', ['run', '--silent', script], { cwd, timeout: LIMIT_MS, maxBuffer: 64 << 20 });
    console.log(`ok      ${name}: npm run ${script} (${String(Math.round((performance.now() - started) / 1_000))} s)`);
    return true;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    console.log(`FAILED  ${name}: npm run ${script}\n${stdout}${stderr}`);
    return false;
  }
}

process.exitCode = await main();
