/** Quantities (Kubernetes API reference, "Quantity"): 1000m is 1, 3072Mi is 3Gi. */
import type { JsonValue, Path } from './types.ts';

const SUFFIXES: Readonly<Record<string, readonly [base: bigint, power: bigint]>> = {
  n: [10n, -9n],
  u: [10n, -6n],
  m: [10n, -3n],
  '': [10n, 0n],
  k: [10n, 3n],
  M: [10n, 6n],
  G: [10n, 9n],
  T: [10n, 12n],
  P: [10n, 15n],
  E: [10n, 18n],
  Ki: [2n, 10n],
  Mi: [2n, 20n],
  Gi: [2n, 30n],
  Ti: [2n, 40n],
  Pi: [2n, 50n],
  Ei: [2n, 60n],
};

/** Digits beyond this are no quantity that a server would take, and would cost time. */
const MAX_CHARS = 64;
const MAX_POWER = 80n;

/** Maps whose values are quantities, whatever the kind: those of core types, which custom resources embed. */
const QUANTITY_MAPS: ReadonlySet<string> = new Set([
  'requests',
  'limits',
  'hard',
  'capacity',
  'allocatable',
  'overhead',
  'podFixed',
  'default',
  'defaultRequest',
  'min',
  'max',
  'maxLimitRequestRatio',
  'minAllowed',
  'maxAllowed',
  'nominalQuota',
]);

/** Single fields of core types that are quantities. */
const QUANTITY_FIELDS: ReadonlySet<string> = new Set([
  'sizeLimit',
  'divisor',
  'averageValue',
  'storage',
  'nominalQuota',
  'borrowingLimit',
]);

/** Is that a field whose text is known to be a quantity? Comparing others so would call different texts equal. */
export function isQuantityPath(path: Path): boolean {
  const last = path.at(-1);
  const parent = path.at(-2);
  if (typeof last !== 'string') return false;
  if (typeof parent === 'string' && QUANTITY_MAPS.has(parent)) return true;
  return QUANTITY_FIELDS.has(last) || (last === 'value' && parent === 'target');
}

/** Equal as quantities; false when one of them is none. */
export function sameQuantity(a: JsonValue, b: JsonValue): boolean {
  const [left, right] = [parseQuantity(a), parseQuantity(b)];
  if (left === undefined || right === undefined) return false;
  return left.numerator * right.denominator === right.numerator * left.denominator;
}

interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

function parseQuantity(value: JsonValue): Fraction | undefined {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value).trim() : '';
  if (text.length > MAX_CHARS) return undefined;
  const end = text.search(/[a-zA-Z]|$/);
  const scale = scaleOf(text.slice(end));
  return scale === undefined ? undefined : fractionOf(text.slice(0, end), scale);
}

function scaleOf(suffix: string): readonly [base: bigint, power: bigint] | undefined {
  const exponent = /^[eE]([+-]?\d+)$/.exec(suffix)?.[1];
  const scale = exponent === undefined ? SUFFIXES[suffix] : ([10n, BigInt(exponent)] as const);
  return scale === undefined || scale[1] > MAX_POWER || scale[1] < -MAX_POWER ? undefined : scale;
}

function fractionOf(digits: string, scale: readonly [base: bigint, power: bigint]): Fraction | undefined {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)$/.test(digits)) return undefined;
  const [whole = '', fraction = ''] = digits.split('.');
  return scaled({ numerator: BigInt(`${whole}${fraction}`), denominator: 10n ** BigInt(fraction.length) }, scale);
}

function scaled({ numerator, denominator }: Fraction, [base, power]: readonly [bigint, bigint]): Fraction {
  return power >= 0n
    ? { numerator: numerator * base ** power, denominator }
    : { numerator, denominator: denominator * base ** -power };
}
