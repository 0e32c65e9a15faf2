import { errorText } from '../telemetry/index.ts';
import { lookAtAll } from './drift/fleet-look.ts';
import type { Looks } from './drift/fleet-look.ts';
import type { DriftOptions } from './drift/options.ts';
import { print } from './drift/print.ts';
import { exitCodeOf, summaryOf } from './drift/report.ts';
import type { DriftReport } from './drift/report.ts';
import { harmless } from './drift/terminal.ts';
import type { Terminal } from './drift/terminal.ts';
import { connectUser } from './drift/user-kubeconfig.ts';
import { AppError } from './errors.ts';
import type { Environment } from './options.ts';

/** What `diff` calls trouble: a wrong flag, a cluster that cannot be read, a release that cannot be compared. */
const TROUBLE = 2;

/** A shell's code for what SIGINT ended. */
const INTERRUPTED = 130;

/**
 * Prints how releases differ from their charts, and resolves with the exit code: 0 no drift, 1 drift, 2 trouble (what
 * could be compared is printed all the same). Writes nothing to any cluster. Who calls: main; `signal` ends it early.
 */
export async function runDrift(
  options: DriftOptions,
  env: Environment,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  try {
    const user = connectUser(options, env);
    try {
      const looks = await lookAtAll(user, options, signal);
      const report = reportOf(looks);
      const releases = looks.looks.flatMap((look) => look.releases);
      print({ report, releases, hints: looks.hints }, options, { terminal, noColor: env.noColor });
      return exitCodeOf(report);
    } finally {
      await user.connection.close();
    }
  } catch (error) {
    terminal.err(`capstan drift: ${told(error)}\n`);
    return signal.aborted ? INTERRUPTED : TROUBLE;
  }
}

/** An AppError's message says all that its cause does. */
function told(error: unknown): string {
  if (!(error instanceof AppError)) return harmless(errorText(error));
  return harmless(error.message) + (error.advice === '' ? '' : `\n  ${error.advice}`);
}

function reportOf({ looks, problems }: Looks): DriftReport {
  const clusters = looks.map(({ cluster }) => cluster);
  const releases = looks.flatMap((look) => look.releases.map(({ report }) => report));
  return { kind: 'DriftReport', version: 1, summary: summaryOf(clusters, releases), clusters, releases, problems };
}
