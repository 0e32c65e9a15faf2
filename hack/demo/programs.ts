import { dirname } from 'node:path';
import { coerce, gte } from 'semver';
import { findProgram } from '../../src/app/find-program.ts';
import { runProgram } from '../../test/support/index.ts';
import type { Binaries } from '../binaries.ts';

/** A client program that the demo runs, and that its user can run. */
export interface Program {
  name: 'helm' | 'kubectl';
  /** Absolute path. */
  path: string;
  version: string;
  /** Whether the user's own PATH has it. */
  onPath: boolean;
}

export interface Programs {
  helm: Program;
  kubectl: Program;
}

/** The oldest ones that will do: Capstan needs helm 3.17, and an older kubectl than 1.30 does not know what today's servers say. */
const OLDEST = { helm: '3.17.0', kubectl: '1.30.0' };
const VERSION_ARGS = {
  helm: ['version', '--template', '{{.Version}}'],
  kubectl: ['version', '--client', '-o', 'json'],
};
/** A version is told in a tenth of a second; a wrapper that goes to the network first is not what is wanted. */
const VERSION_LIMIT_MS = 10_000;

/** helm and kubectl: PATH's when they are recent enough, otherwise those of the project. */
export async function choosePrograms(own: Binaries, path: string, signal: AbortSignal): Promise<Programs> {
  const [helm, kubectl] = await Promise.all([
    choose('helm', own.helm, path, signal),
    choose('kubectl', own.kubectl, path, signal),
  ]);
  return { helm, kubectl };
}

/** The folders that a user's PATH lacks for the commands that the demo prints. */
export function missingFolders(programs: Programs): string[] {
  const away = [programs.helm, programs.kubectl].filter(({ onPath }) => !onPath);
  return [...new Set(away.map((program) => dirname(program.path)))];
}

async function choose(name: Program['name'], own: string, path: string, signal: AbortSignal): Promise<Program> {
  const found = findProgram(name, path);
  const version = found === undefined ? undefined : await versionOf(name, found, signal);
  if (found !== undefined && version !== undefined && gte(version, OLDEST[name])) {
    return { name, path: found, version, onPath: true };
  }
  return { name, path: own, version: (await versionOf(name, own, signal)) ?? 'unknown', onPath: false };
}

/** Undefined where the program does not tell: then it is not one to use. */
async function versionOf(name: Program['name'], path: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const text = await runProgram(path, VERSION_ARGS[name], { signal, timeoutMs: VERSION_LIMIT_MS });
    const full =
      name === 'helm' ? text : (JSON.parse(text) as { clientVersion: { gitVersion: string } }).clientVersion.gitVersion;
    return coerce(full)?.version;
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}
