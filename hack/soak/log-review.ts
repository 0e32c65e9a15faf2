/** What the manager's log says in warnings and errors, counted; and which of it the faults of the run do not explain. */
export interface LogReview {
  readonly counts: Readonly<Record<string, number>>;
  readonly unexplained: readonly string[];
}

interface Line {
  readonly level?: string;
  readonly msg?: string;
  readonly err?: unknown;
}

/** What ways that are cut, stalled or closed, and credentials that are refused, do to whoever is at work. */
const EXPLAINED =
  /connect|socket|network|timed? ?out|no answer|unauthorized|refused|closed|reset|aborted|disengaged|not within|EOF|unreachable|provide credentials|stopped by|deadline|is gone|not done within/i;
const MOST_UNEXPLAINED = 20;

export function reviewLog(text: string): LogReview {
  const counts: Record<string, number> = {};
  const unexplained: string[] = [];
  for (const row of text.split('\n')) {
    const line = parse(row);
    if (line === undefined || (line.level !== 'warn' && line.level !== 'error')) continue;
    const key = `${line.level}: ${line.msg ?? ''}`;
    counts[key] = (counts[key] ?? 0) + 1;
    const isFailure = line.level === 'error' || /failed/.test(line.msg ?? '');
    if (isFailure && !EXPLAINED.test(JSON.stringify(line.err ?? '')) && unexplained.length < MOST_UNEXPLAINED)
      unexplained.push(row);
  }
  return { counts, unexplained };
}

function parse(row: string): Line | undefined {
  try {
    return JSON.parse(row) as Line;
  } catch {
    return undefined;
  }
}
