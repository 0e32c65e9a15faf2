/** A bigint is an integer, with all its digits: as a map key it is written out. */
export type ScalarValue = null | boolean | number | string | bigint;

/** A scalar's value and the tag that its text alone gives it. */
export interface ResolvedScalar {
  readonly tag: string;
  readonly value: ScalarValue;
}

const WORDS: ReadonlyMap<string, null | boolean | number> = new Map<string, null | boolean | number>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
  ...['.nan', '.NaN', '.NAN'].map((word) => [word, Number.NaN] as const),
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((word) => [word, Number.POSITIVE_INFINITY] as const),
  ...['-.inf', '-.Inf', '-.INF'].map((word) => [word, Number.NEGATIVE_INFINITY] as const),
]);

const FLOAT = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/;
/** As strconv.ParseFloat takes one that begins with its dot: an underscore only between digits. */
const DOT_FLOAT = /^\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?$/;
const INTEGER = /^([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)$/;
const MAX_UINT64 = 2n ** 64n - 1n;
const MIN_INT64 = -(2n ** 63n);

/**
 * The value of a scalar's text as go-yaml v2 (resolve.go) resolves it. `tag` is in short form ('!!int'); undefined for a
 * plain scalar without one. Undefined when the text is not what the tag says.
 */
export function resolveScalar(text: string, tag: string | undefined): ResolvedScalar | undefined {
  switch (tag) {
    case undefined:
      return resolvePlain(text);
    case '!!int':
    case '!!float':
    case '!!bool':
    case '!!null':
      return resolveTagged(text, tag);
    case '!!binary':
      return binary(text);
    default:
      // !!str, !!timestamp (text for interface{}), and tags of somebody's own.
      return { tag: '!!str', value: text };
  }
}

function resolveTagged(text: string, tag: string): ResolvedScalar | undefined {
  const plain = resolvePlain(text);
  if (tag === '!!float' && plain.tag === '!!int') return { tag, value: Number(plain.value) };
  return plain.tag === tag ? plain : undefined;
}

function resolvePlain(text: string): ResolvedScalar {
  const word = WORDS.get(text);
  if (word !== undefined) return { tag: tagOf(word), value: word };
  // go-yaml looks for numbers only behind these first characters, and strips underscores except behind a dot.
  if (/^[-+0-9]/.test(text)) {
    const digits = text.replaceAll('_', '');
    return integer(digits) ?? float(digits, text);
  }
  return text.startsWith('.')
    ? float(DOT_FLOAT.test(text) ? text.replaceAll('_', '') : '', text)
    : { tag: '!!str', value: text };
}

function tagOf(word: null | boolean | number): string {
  if (word === null) return '!!null';
  return typeof word === 'boolean' ? '!!bool' : '!!float';
}

function integer(digits: string): ResolvedScalar | undefined {
  const match = INTEGER.exec(digits);
  if (match === null) return undefined;
  const [, sign, body = ''] = match;
  const magnitude = BigInt(/^0[0-7]/.test(body) ? `0o${body.slice(1)}` : body);
  const value = sign === '-' ? -magnitude : magnitude;
  // A sign is refused where only the unsigned range would do (strconv.ParseUint).
  if (value > MAX_UINT64 || value < MIN_INT64 || (sign === '+' && value > MAX_UINT64 / 2n)) return undefined;
  return { tag: '!!int', value };
}

function float(digits: string, text: string): ResolvedScalar {
  const value = FLOAT.test(digits) ? Number(digits) : Number.NaN;
  // Out of range is an error to strconv.ParseFloat, and text to go-yaml.
  if (!Number.isFinite(value)) return { tag: '!!str', value: text };
  return { tag: '!!float', value };
}

function binary(text: string): ResolvedScalar | undefined {
  const bare = text.replaceAll(/[\r\n]/g, '');
  if (bare.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(bare)) return undefined;
  return { tag: '!!binary', value: Buffer.from(bare, 'base64').toString('utf8') };
}

/** A float as a map key: Go's strconv.FormatFloat(x, 'g', -1, 32), the shortest text that gives the same float32. */
export function formatGoFloat32(value: number): string {
  const single = Math.fround(value);
  if (Number.isNaN(single)) return '.nan';
  if (!Number.isFinite(single)) return single > 0 ? '.inf' : '-.inf';
  const [mantissa = '0', exponent = '0'] = shortestFloat32(single).split('e');
  const power = Number(exponent);
  if (power >= MIN_PLAIN_POWER && power < MAX_PLAIN_POWER) return plainDecimal(mantissa, power);
  const sign = power < 0 ? '-' : '+';
  return `${mantissa}e${sign}${String(Math.abs(power)).padStart(2, '0')}`;
}

/** 'g' writes an exponent for powers outside of these. */
const MIN_PLAIN_POWER = -4;
const MAX_PLAIN_POWER = 6;

function shortestFloat32(single: number): string {
  // Nine significant digits tell any two float32 apart.
  for (let digits = 0; digits < 8; digits++) {
    const text = single.toExponential(digits);
    if (Math.fround(Number(text)) === single) return text;
  }
  return single.toExponential(8);
}

function plainDecimal(mantissa: string, power: number): string {
  const negative = mantissa.startsWith('-') ? '-' : '';
  const digits = mantissa.replace('-', '').replace('.', '');
  if (power < 0) return `${negative}0.${'0'.repeat(-power - 1)}${digits}`;
  const whole = digits.padEnd(power + 1, '0');
  const fraction = whole.slice(power + 1);
  return negative + whole.slice(0, power + 1) + (fraction === '' ? '' : `.${fraction}`);
}
