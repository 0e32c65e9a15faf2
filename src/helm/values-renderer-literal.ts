/**
 * JSON values as expressions of Go's template language, of the very Go types that a Kubernetes object decoded from JSON
 * has (int64, float64, string, bool, nil, []any, map[string]any). Passed as Helm values instead, every number would
 * become a float64: 1000000 prints as 1e+06 and `eq .x 3` fails.
 */

const MAX_INT64 = 2n ** 63n - 1n;
const MIN_INT64 = -(2n ** 63n);

/** A string as a Go literal. JSON's escapes are all Go's too; a lone surrogate, which UTF-8 cannot say, becomes U+FFFD. */
export function goString(text: string): string {
  return JSON.stringify(text.toWellFormed());
}

/** A JSON value as an argument of a template function. Undefined members are left out, as JSON does. */
export function goValue(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return goString(value);
    case 'number':
      return goNumber(value);
    case 'bigint':
      return goInteger(value);
    case 'boolean':
      return String(value);
    case 'object':
      return value === null ? 'nil' : goCollection(value);
    default:
      return 'nil';
  }
}

function goCollection(value: object): string {
  if (Array.isArray(value)) return call('list', value.map(goValue));
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return call(
    'dict',
    members.map(([name, member]) => `${goString(name)} ${goValue(member)}`),
  );
}

function call(name: string, parts: readonly string[]): string {
  return parts.length === 0 ? `(${name})` : `(${name} ${parts.join(' ')})`;
}

function goNumber(value: number): string {
  if (!Number.isFinite(value)) return 'nil';
  return Number.isInteger(value) ? goInteger(BigInt(value)) : goFloat(String(value));
}

/** A literal would be an int; an object's integers are int64, which `kindOf` and `printf "%T"` tell apart. */
function goInteger(value: bigint): string {
  return value < MIN_INT64 || value > MAX_INT64 ? goFloat(String(Number(value))) : `(int64 ${value})`;
}

/** Go takes a number for a float when its text says so. */
function goFloat(text: string): string {
  return /[.e]/.test(text) ? text : `${text}.0`;
}
