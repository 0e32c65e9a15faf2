/** Paths into objects as JSON pointers (RFC 6901), and the patterns that ignore rules are made of. */
import type { JsonValue, Path, PathPattern } from './types.ts';

/** The JSON pointer of a path; '' is the whole object. */
export function pointerOf(path: Path): string {
  return path.map((segment) => `/${String(segment).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** The segments of a JSON pointer, unescaped. Throws a TypeError that says what is wrong with it. */
export function parsePointer(text: string): string[] {
  if (text === '') return [];
  if (!text.startsWith('/')) throw new TypeError(`"${text}" must begin with / (a JSON pointer, e.g. /spec/replicas)`);
  return text
    .slice(1)
    .split('/')
    .map((segment) => {
      if (/~(?![01])/.test(segment)) throw new TypeError(`"${text}" has a ~ that is neither ~0 (for ~) nor ~1 (for /)`);
      return segment.replaceAll('~1', '/').replaceAll('~0', '~');
    });
}

/** What is at a path; undefined when something on the way is missing. */
export function valueAt(value: JsonValue | undefined, path: Path): JsonValue | undefined {
  let current = value;
  for (const segment of path) {
    if (typeof current !== 'object' || current === null) return undefined;
    if (Array.isArray(current)) current = typeof segment === 'number' ? current[segment] : undefined;
    else current = Object.hasOwn(current, segment) ? current[segment] : undefined;
  }
  return current;
}

/** Does a pattern cover a path? It covers what it names and all below; `*` names every element or key, [] everything. */
export function matchesPattern(path: Path, pattern: PathPattern): boolean {
  return (
    path.length >= pattern.length &&
    pattern.every((segment, index) => segment === '*' || segment === String(path[index]))
  );
}
