/** What every bench on a fleet of its own does the same way: flags, programs, set-up, measuring, report, clean end. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { FLEET_PROGRAMS, obtainBinaries } from '../hack/binaries.ts';
import { Interrupt } from '../hack/demo/interrupt.ts';

/** Printed instead of a run: help, or what is wrong with a flag. */
export interface Refusal {
  text: string;
  exitCode: number;
}

export interface Bench<Options, Bed, Results> {
  /** The flags; throws an Error that says what is wrong. undefined: help was asked for. */
  read(): Options | undefined;
  usage: string;
  setUp(options: Options, signal: AbortSignal): Promise<Bed>;
  measure(bed: Bed, options: Options, signal: AbortSignal): Promise<Results>;
  /** After the bed has been stopped; resolves with the exit code. */
  report(results: Results, options: Options, bed: Bed): Promise<number>;
}

/** Runs a bench to its end, or until Ctrl-C; what it started is stopped either way. Resolves with the exit code. */
export async function runBench<
  Options extends { fromSources: boolean },
  Bed extends { stop(): Promise<void> },
  Results,
>(bench: Bench<Options, Bed, Results>, env: NodeJS.ProcessEnv): Promise<number> {
  const options = readOptions(bench);
  if ('text' in options) {
    (options.exitCode === 0 ? process.stdout : process.stderr).write(`${options.text}\n`);
    return options.exitCode;
  }
  if (!options.fromSources && !existsSync(join(import.meta.dirname, '../dist/main.js'))) {
    console.error('bin/capstan is not built yet; run: npm ci (or npm run build)');
    return 1;
  }
  const interrupt = new Interrupt(() => process.exit(130));
  const { signal } = interrupt;
  let bed: Bed | undefined;
  try {
    await obtainBinaries(env, signal, FLEET_PROGRAMS);
    bed = await bench.setUp(options, signal);
    const results = await bench.measure(bed, options, signal);
    await bed.stop();
    return await bench.report(results, options, bed);
  } catch (error) {
    await bed?.stop();
    console.error(signal.aborted ? String(signal.reason) : error);
    return signal.aborted ? 130 : 1;
  } finally {
    interrupt.dispose();
  }
}

function readOptions<Options extends object>(bench: { read(): Options | undefined; usage: string }): Options | Refusal {
  try {
    return bench.read() ?? { text: bench.usage, exitCode: 0 };
  } catch (error) {
    return { text: `${error instanceof Error ? error.message : String(error)}\n\n${bench.usage}`, exitCode: 2 };
  }
}

/** A flag's whole number. Throws an Error that names the flag. */
export function count(name: string, text: string, least: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least) return value;
  throw new Error(`--${name} must be a whole number of at least ${least}, not "${text}"`);
}

export function say(text: string): void {
  console.log(text);
}
