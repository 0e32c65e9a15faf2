import { accessSync, constants } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';

/** The absolute path of a program: a path as it is, a bare name as PATH finds it. Undefined when there is none that may be run. */
export function findProgram(name: string, path: string): string | undefined {
  const candidates = name.includes('/')
    ? [isAbsolute(name) ? name : resolve(name)]
    : path
        .split(delimiter)
        .filter(Boolean)
        .map((folder) => join(folder, name));
  return candidates.find((candidate) => {
    try {
      accessSync(candidate, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
