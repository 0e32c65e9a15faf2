/** The binary `capstan`: reads the command line and the environment, runs, and leaves with an exit code. */
import { readFileSync } from 'node:fs';
import { AppError, readCommandLine, readEnvironment, runDoctor, runDrift, runManager, runTree } from './app/index.ts';
import type { Terminal } from './app/index.ts';
import { errorText } from './telemetry/index.ts';

/** What a shell reports of a program ended by SIGINT; used when a second signal forces the end. */
const FORCED_EXIT_CODE = 130;

async function main(): Promise<void> {
  const version = packageVersion();
  const env = readEnvironment(process.env, process.stderr.isTTY);
  const command = await readCommandLine(process.argv.slice(2), env, version);
  if (command.kind === 'print') {
    process.stdout.write(`${command.text}\n`);
    return;
  }
  if (command.kind === 'drift') {
    process.exitCode = await runDrift(command.options, env, terminal(), stopSignal());
    return;
  }
  if (command.kind === 'tree') {
    process.exitCode = await runTree(command.options, env, terminal(), stopSignal());
    return;
  }
  if (command.kind === 'doctor') {
    process.exitCode = await runDoctor(command.options, env, terminal(), stopSignal());
    return;
  }
  await runManager(command.options, env, stopSignal());
}

/** Whoever reads may have left (`| head`): that is his right, and no error. */
function terminal(): Terminal {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal: process.stdout.isTTY,
  };
}

/** Aborts at the first SIGTERM or SIGINT: drain. The second one ends the process at once. */
function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(FORCED_EXIT_CODE);
      stop.abort(new Error(`stopped by ${name}`));
    });
  }
  return stop.signal;
}

function packageVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** One line for people; a stack trace only where the fault is ours. */
function report(error: unknown): number {
  if (error instanceof AppError) {
    process.stderr.write(`capstan: ${error.message}\n${error.advice === '' ? '' : `  ${error.advice}\n`}`);
    return error.exitCode;
  }
  process.stderr.write(`capstan: ${errorText(error)}\n`);
  return 1;
}

// A rejection that nobody hears is a bug; going on with unknown state would be worse than a restart.
process.on('unhandledRejection', (error) => {
  process.exit(report(error));
});

try {
  await main();
} catch (error) {
  process.exitCode = report(error);
}
