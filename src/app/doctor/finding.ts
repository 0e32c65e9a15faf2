/** What one look came to. */
export interface Finding {
  /** Name of the check; docs/cli.md has a row for each. */
  readonly check: CheckName;
  /** `skip`: it could not be made, and why. */
  readonly level: 'ok' | 'warn' | 'fail' | 'skip';
  /** What it is about: a Cluster, an object, a right; '' for the whole. */
  readonly subject: string;
  readonly message: string;
  /** What to do; '' where nothing is to be done. */
  readonly advice: string;
}

export const CHECKS = [
  'api-server',
  'crds',
  'cluster-api',
  'permissions',
  'helm',
  'leader',
  'other-controller',
  'cluster',
  'certificate',
  'release',
  'selector',
  'collision',
  'orphan',
] as const;
export type CheckName = (typeof CHECKS)[number];

/** As -o json and yaml print it: docs/cli.md describes it, and it only grows. */
export interface DoctorReport {
  readonly kind: 'DoctorReport';
  readonly version: 1;
  readonly summary: { readonly ok: number; readonly warn: number; readonly fail: number; readonly skip: number };
  readonly findings: readonly Finding[];
}

/** Makes findings of one check. */
export class Findings {
  readonly all: Finding[] = [];
  readonly #check: CheckName;

  constructor(check: CheckName) {
    this.#check = check;
  }

  ok(subject: string, message: string): void {
    this.#add('ok', { subject, message, advice: '' });
  }

  warn(subject: string, message: string, advice: string): void {
    this.#add('warn', { subject, message, advice });
  }

  fail(subject: string, message: string, advice: string): void {
    this.#add('fail', { subject, message, advice });
  }

  skip(subject: string, message: string, advice = ''): void {
    this.#add('skip', { subject, message, advice });
  }

  #add(level: Finding['level'], { subject, message, advice }: Pick<Finding, 'subject' | 'message' | 'advice'>): void {
    this.all.push({ check: this.#check, level, subject, message, advice });
  }
}

export function reportOf(findings: readonly Finding[]): DoctorReport {
  const number = (level: Finding['level']): number => findings.filter((one) => one.level === level).length;
  const summary = { ok: number('ok'), warn: number('warn'), fail: number('fail'), skip: number('skip') };
  return { kind: 'DoctorReport', version: 1, summary, findings };
}

/** 0: all is well; 1: something is wrong, or may become so; 2: not everything could be looked at. */
export function doctorExitCode({ summary }: DoctorReport): 0 | 1 | 2 {
  if (summary.fail > 0 || summary.warn > 0) return 1;
  return summary.skip > 0 ? 2 : 0;
}
