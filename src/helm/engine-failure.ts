import { HelmError } from './errors.ts';
import type { HelmErrorCode } from './errors.ts';

/** Characters of a message: it becomes a condition's, in the status of many objects. */
const MAX_MESSAGE = 1_500;
const HEAD = 1_000;

/** In order: the first that matches is the class. Texts are Helm 3's and 4's, client-go's and the API server's. */
const CLASSES: readonly (readonly [HelmErrorCode, RegExp])[] = [
  ['ReleaseExists', /cannot re-?use a name that is still in use/],
  ['ReleasePending', /another operation \(install\/upgrade\/rollback\) is in progress|release: already exists/],
  ['NoDeployedRelease', /has no deployed releases/],
  ['ReleaseNotFound', /release: not found|release has no \d+ version/],
  ['OptionUnsupported', /only unpacked charts can be updated/],
  ['OwnershipConflict', /invalid ownership metadata/],
  ['FieldConflict', /Apply failed with \d+ conflict/],
  ['ValuesInvalid', /values don't meet the specifications of the schema|failed to parse -:/],
  ['ChartInvalid', /(parse|execution) error (at|on) |YAML parse error|error calling |: executing "/],
  [
    'ChartInvalid',
    /missing in charts\/ directory|gzipped archive|chart requires kubeVersion|Chart\.yaml|validation: chart/,
  ],
  ['Unauthorized', /has asked for the client to provide credentials|Unauthorized/],
  [
    'Unreachable',
    /cluster unreachable|connection (refused|reset|lost)|no such host|handshake timeout|i\/o timeout|no route to host/,
  ],
  ['HookFailed', /failed (pre|post)-\w+|(pre|post)-\w+ hooks failed|hook .* failed|BackoffLimitExceeded/],
  ['ImmutableField', /field is immutable|Forbidden: updates to |may not (be )?change|cannot be changed/],
  ['Forbidden', /is forbidden/],
  ['Timeout', /deadline exceeded|timed out waiting/],
  [
    'ObjectInvalid',
    /is invalid|Invalid value|field not declared|no matches for kind|unknown field|cannot be handled as/,
  ],
  ['Cancelled', /context canceled/],
];

/** The API server about Helm's own record (core/v1 validation, MaxSecretSize). */
const RECORD_TOO_LARGE = /Secret "sh\.helm\.release\.[^"]*" is invalid: data: Too long/;

/**
 * The error of a helm that failed. `stderr` is the end of what it wrote; `redact` takes the user's values out of a text.
 * `fallback` is said when Helm said nothing.
 */
export function helmFailure(stderr: string, redact: (text: string) => string, fallback: string): HelmError {
  const said = lastError(stderr);
  if (said === undefined) return new HelmError('Failed', fallback);
  const code = CLASSES.find(([, pattern]) => pattern.test(said))?.[0] ?? 'Failed';
  const message = bounded(redact(said));
  if (RECORD_TOO_LARGE.test(said)) {
    return new HelmError(
      'ObjectInvalid',
      `the release is too large: Helm keeps its chart, values and manifest together in one Secret, compressed, which ` +
        `holds at most 1 MiB. Make the values or the chart smaller, or split the chart (${message})`,
    );
  }
  if (code !== 'OptionUnsupported') return new HelmError(code, message);
  return new HelmError(
    code,
    `options.dependencyUpdate: the chart is a package that lacks dependencies, and Helm updates them only in unpacked ` +
      `charts (${message}). Package it with \`helm package --dependency-update\``,
    { field: 'options.dependencyUpdate' },
  );
}

/**
 * What stands behind the last "Error:", without Helm's name for the command that failed: as CAAPH, which links Helm,
 * reports it. Undefined when helm ended without a word.
 */
export function lastError(stderr: string): string | undefined {
  const at = Math.max(stderr.lastIndexOf('\nError: ') + 1, stderr.startsWith('Error: ') ? 0 : -1);
  if (!stderr.startsWith('Error: ', at)) return undefined;
  const lines = stderr
    .slice(at + 'Error: '.length)
    .replace(/^(INSTALLATION|UPGRADE) FAILED: /, '')
    .split('\n')
    .filter((line) => !isNoise(line))
    .map((line) => line.trimEnd())
    .filter((line) => line !== '');
  return lines.length === 0 ? undefined : lines.join('\n');
}

/** Lines of klog (I1130 22:58:03.199035 …), of Helm 4's log, and about deprecated flags. */
function isNoise(line: string): boolean {
  return /^[IWEF]\d{4} [\d:.]+ |^level=[A-Z]+ |^(Flag --|WARNING: |time=)/.test(line);
}

/** At most MAX_MESSAGE characters: what went wrong stands at the start, and why at the end. */
export function bounded(text: string): string {
  if (text.length <= MAX_MESSAGE) return text;
  return `${text.slice(0, HEAD)} ... ${text.slice(HEAD - MAX_MESSAGE)}`;
}
