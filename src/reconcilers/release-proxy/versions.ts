/** Versions of charts. */
import semver from 'semver';

/** One version, however it is spelled: repositories write v1.2.3 for a chart 1.2.3. What is no version is compared as text. */
export function sameVersion(a: string, b: string): boolean {
  if (a === b) return true;
  const [left, right] = [semver.parse(a, { loose: true }), semver.parse(b, { loose: true })];
  return left !== null && right !== null && semver.compareBuild(left, right) === 0;
}
