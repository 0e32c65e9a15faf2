import { SemVer } from 'semver';
import { HelmError } from './errors.ts';

/**
 * Chart versions and ranges as Helm reads them: Masterminds/semver, whose ranges differ from npm's above all in when a
 * pre-release fits (any, in a group of conditions of which one names a pre-release; otherwise none).
 */

/** A version as Helm takes it: a leading `v` and missing parts are allowed. The text itself is kept: it is what is asked for. */
interface ReadVersion {
  readonly text: string;
  readonly version: SemVer;
}

const LOOSE_VERSION =
  /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z.-]+))?$/;

function readVersion(text: string): ReadVersion | undefined {
  const match = LOOSE_VERSION.exec(text);
  if (match === null) return undefined;
  const [, major = '0', minor = '0', patch = '0', pre, build] = match;
  try {
    // BigInt drops leading zeros, as in 2024.01.02, which Helm accepts.
    const core = [major, minor, patch].map((part) => String(BigInt(part))).join('.');
    const version = new SemVer(core + (pre === undefined ? '' : `-${pre}`) + (build === undefined ? '' : `+${build}`), {
      loose: true,
    });
    return { text, version };
  } catch {
    return undefined;
  }
}

/** True for one version, written out; false for a range and for ''. */
export function isExactVersion(wanted: string): boolean {
  return /^v?\d+\.\d+\.\d+/.test(wanted) && readVersion(wanted) !== undefined;
}

/**
 * The version that Helm would take of `available`: the very text if it is there, else the newest that fits. '' is the
 * newest stable one. Undefined when none fits; HelmError VersionInvalid when `wanted` is neither version nor range.
 */
export function chooseVersion(wanted: string, available: readonly string[]): string | undefined {
  if (wanted !== '' && available.includes(wanted)) return wanted;
  const fits = compileRange(wanted === '' ? '*' : wanted);
  let best: ReadVersion | undefined;
  for (const text of available) {
    const read = readVersion(text);
    if (read === undefined || !fits(read.version)) continue;
    if (best === undefined || compare(read, best) > 0) best = read;
  }
  return best?.text;
}

/** The newest few of `available`, newest first, for an error that says what there is. */
export function newestVersions(available: readonly string[], count: number): string[] {
  return available
    .map(readVersion)
    .filter((read) => read !== undefined)
    .sort((a, b) => compare(b, a))
    .slice(0, count)
    .map((read) => read.text);
}

/** By precedence; of two that are equal in that, by build metadata, so that the choice is always the same. */
function compare(a: ReadVersion, b: ReadVersion): number {
  return a.version.compare(b.version) || a.version.compareBuild(b.version);
}

type Fits = (version: SemVer) => boolean;

/** A condition's version, of which trailing parts may be missing or `x`. */
interface Bound {
  readonly version: SemVer;
  /** How many of major, minor, patch are given. */
  readonly given: 0 | 1 | 2 | 3;
}

const VERSION = String.raw`v?(?:[0-9xX*]+)(?:\.[0-9xX*]+)?(?:\.[0-9xX*]+)?(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?`;
const OPERATOR = '!=|>=|=>|<=|=<|~>|=|>|<|~|\\^|';
const CONDITION = new RegExp(String.raw`\s*(${OPERATOR})\s*(${VERSION})(?:\s*,\s*|\s+|$)`, 'y');
const HYPHEN = new RegExp(String.raw`(${VERSION})\s+-\s+(${VERSION})`, 'g');
/** Masterminds' own limit, so that nobody's object costs more than it would there. Characters. */
const MAX_RANGE_LENGTH = 512;

function compileRange(text: string): Fits {
  if (text.length > MAX_RANGE_LENGTH) throw invalid(text.slice(0, 64) + '…');
  const groups = text
    .replace(HYPHEN, '>= $1, <= $2')
    .split('||')
    .map((group) => compileGroup(group, text));
  return (version) => groups.some((fits) => fits(version));
}

function compileGroup(group: string, whole: string): Fits {
  const conditions: Fits[] = [];
  let preReleases = false;
  CONDITION.lastIndex = 0;
  while (CONDITION.lastIndex < group.trimEnd().length) {
    const match = CONDITION.exec(group);
    if (match === null) throw invalid(whole);
    const bound = readBound(match[2] ?? '', whole);
    if (bound.version.prerelease.length > 0) preReleases = true;
    conditions.push(condition(match[1] ?? '', bound));
  }
  if (conditions.length === 0) throw invalid(whole);
  return (version) => (preReleases || version.prerelease.length === 0) && conditions.every((fits) => fits(version));
}

function readBound(text: string, whole: string): Bound {
  const match = /^v?([^.+-]+)(?:\.([^.+-]+))?(?:\.([^.+-]+))?(-[^+]+)?/.exec(text);
  if (match === null) throw invalid(whole);
  const parts = [match[1], match[2], match[3]];
  const missing = parts.findIndex((part) => part === undefined || /^[xX*]$/.test(part));
  const given = missing === -1 ? 3 : (missing as 0 | 1 | 2);
  const core = parts.map((part, index) => (index < given ? (part ?? '0') : '0')).join('.');
  const read = readVersion(core + (match[4] ?? ''));
  if (read === undefined) throw invalid(whole);
  return { version: read.version, given };
}

function condition(operator: string, bound: Bound): Fits {
  const { version: at, given } = bound;
  // What is missing in the bound does not count: >11 means past all of 11, <=11.1 includes all of 11.1.
  const parts = given === 0 ? 3 : given;
  const order = (version: SemVer): number => (parts === 3 ? version.compare(at) : compareParts(version, at, parts));
  switch (operator) {
    case '>':
      return (version) => order(version) > 0;
    case '<=':
    case '=<':
      return (version) => order(version) <= 0;
    case '!=':
      return (version) => order(version) !== 0;
    case '<':
      return (version) => version.compare(at) < 0;
    case '>=':
    case '=>':
      return (version) => version.compare(at) >= 0;
    default:
      return sameness(operator, bound);
  }
}

/** `^`, `~`, `~>`, `=` and none: not below the bound, and the same as far as the operator says. */
function sameness(operator: string, bound: Bound): Fits {
  const { version: at, given } = bound;
  if (operator !== '^' && !operator.startsWith('~') && given === 3) return (version) => version.compare(at) === 0;
  const parts = operator === '^' ? caretParts(bound) : tildeParts(bound);
  return (version) => version.compare(at) >= 0 && compareParts(version, at, parts) === 0;
}

/** Same major and minor; only the same major when no minor is given; anything for `*`, and, by Helm's library, for ~0.0.0. */
function tildeParts({ version: at, given }: Bound): number {
  if (given === 3 && at.major === 0 && at.minor === 0 && at.patch === 0) return 0;
  return Math.min(given, 2);
}

/** How many parts must stay the same: up to the first one that is not zero. */
function caretParts({ version: at, given }: Bound): number {
  if (given === 0) return 0;
  if (at.major > 0 || given === 1) return 1;
  return at.minor > 0 || given === 2 ? 2 : 3;
}

/** Compares the first `parts` of major, minor, patch; pre-releases do not count. */
function compareParts(a: SemVer, b: SemVer, parts: number): number {
  const pairs = [
    [a.major, b.major],
    [a.minor, b.minor],
    [a.patch, b.patch],
  ] as const;
  for (const [left, right] of pairs.slice(0, parts)) {
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

function invalid(text: string): HelmError {
  return new HelmError('VersionInvalid', `"${text}" is neither a version nor a range of versions`);
}
