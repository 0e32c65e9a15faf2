/** Milliseconds per unit of a Go duration (metav1.Duration, Go's time.ParseDuration). */
const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/gy;

/** Milliseconds of a Go duration such as "10m0s" or "1.5h"; undefined when the text is none. Who calls: whoever reads a flag or a field of that type. */
export function parseDuration(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1;
  const body = /^[+-]/.test(text) ? text.slice(1) : text;
  if (body === '0') return 0;
  let total = 0;
  let end = 0;
  for (const match of body.matchAll(PART)) {
    total += Number(match[1]) * (UNIT_MS[match[2] ?? ''] ?? Number.NaN);
    end = match.index + match[0].length;
  }
  return body !== '' && end === body.length ? sign * total : undefined;
}

/** A Go duration for milliseconds, in the largest units: 90000 → "1m30s". */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0s';
  const sign = ms < 0 ? '-' : '';
  let rest = Math.abs(ms);
  let text = '';
  for (const [unit, size] of [
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
    ['ms', 1],
  ] as const) {
    const count = unit === 'ms' ? rest : Math.floor(rest / size);
    if (count > 0) text += `${String(count)}${unit}`;
    rest -= count * size;
  }
  return sign + text;
}
