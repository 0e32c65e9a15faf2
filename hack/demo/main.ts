/**
 * `npm run demo`: a management cluster, workload clusters and Capstan on this machine, on real API servers, and a short
 * story on them. Without `--once` it then waits, for the user to play on, until Ctrl-C.
 */
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { INSTALLED } from '../../test/support/index.ts';
import { FLEET_PROGRAMS, obtainBinaries } from '../binaries.ts';
import { DemoFolder } from './folder.ts';
import { Interrupt, Interrupted } from './interrupt.ts';
import { exports, playOn } from './play-on.ts';
import { Screen } from './screen.ts';
import { Stage } from './stage.ts';
import { Story } from './story.ts';

const USAGE = `npm run demo -- [flags]

  --clusters N   workload clusters, 2 to 12 (default 2)
  --once         end after the story; exit code 0 when all of it really happened
  --sources      run the manager from src/, not what npm ci built`;

const ROOT = join(import.meta.dirname, '../..');
/** A management cluster and this many take 3.5 GB; a machine for more has its own clusters. */
const MAX_CLUSTERS = 12;
/** Time (ms) to read a scene before the next one begins, where somebody watches. */
const READING_MS = 1_500;

interface Options {
  clusters: number;
  once: boolean;
  fromSources: boolean;
}

/** Runs the demo; resolves with the exit code. */
async function main(args: string[], env: NodeJS.ProcessEnv): Promise<number> {
  const screen = new Screen(process.stdout);
  const options = readOptions(args);
  if ('text' in options) {
    (options.exitCode === 0 ? process.stdout : process.stderr).write(`${options.text}\n`);
    return options.exitCode;
  }
  let folder: DemoFolder | undefined;
  let stage: Stage | undefined;
  const interrupt = new Interrupt(() => {
    // Children die with this process (test/support/process.ts); what they wrote goes here.
    if (stage) rmSync(stage.environment.directory, { recursive: true, force: true });
    folder?.removeNow();
    process.exit(130);
  });
  const { signal } = interrupt;
  try {
    if (!options.fromSources && !existsSync(join(ROOT, 'dist/main.js'))) {
      throw new Error(`${INSTALLED[0]} is not built yet; run: npm ci (or npm run build)`);
    }
    folder = await DemoFolder.create(join(ROOT, '.demo'), env['INIT_CWD'] ?? process.cwd());
    screen.scene('Capstan demo: real API servers on this machine, no Docker');
    screen.say('The programs it needs come first; the first time that takes minutes.', 'quiet');
    await obtainBinaries(env, signal, FLEET_PROGRAMS);
    stage = await Stage.setUp(
      { clusters: options.clusters, fromSources: options.fromSources, path: env['PATH'] ?? '', signal },
      folder,
      screen,
    );
    await tell(stage, screen, { once: options.once, signal });
    if (options.once) await tryCommands(stage, screen);
    else await wait(stage, screen);
    await end(stage, folder, screen);
    return 0;
  } catch (error) {
    return await failed(error, { stage, folder, screen, signal });
  } finally {
    interrupt.dispose();
  }
}

function readOptions(args: string[]): Options | { text: string; exitCode: number } {
  try {
    const { values } = parseArgs({
      args,
      options: {
        clusters: { type: 'string', default: '2' },
        once: { type: 'boolean', default: false },
        sources: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.help) return { text: USAGE, exitCode: 0 };
    const clusters = Number(values.clusters);
    if (!Number.isInteger(clusters) || clusters < 2 || clusters > MAX_CLUSTERS) {
      throw new Error(`--clusters must be a whole number from 2 to ${MAX_CLUSTERS}, not "${values.clusters}"`);
    }
    return { clusters, once: values.once, fromSources: values.sources };
  } catch (error) {
    return { text: `${messageOf(error)}\n\n${USAGE}`, exitCode: 2 };
  }
}

/** Plays every scene. Rejects with the one that did not happen, and names what was therefore left out. */
async function tell(stage: Stage, screen: Screen, how: { once: boolean; signal: AbortSignal }): Promise<void> {
  const scenes = new Story(stage, screen).scenes();
  for (const [index, scene] of scenes.entries()) {
    screen.scene(scene.title);
    try {
      await scene.play();
    } catch (error) {
      how.signal.throwIfAborted();
      const rest = scenes.slice(index + 1).map(({ title }) => `\n  not tried: ${title}`);
      throw new Error(`this did not happen: ${scene.title}\n  ${messageOf(error)}${rest.join('')}`, { cause: error });
    }
    if (!how.once) await sleep(READING_MS, undefined, { signal: stage.signal });
  }
}

/** Every command that a user would be shown must work. */
async function tryCommands(stage: Stage, screen: Screen): Promise<void> {
  screen.scene('7. The commands with which a user would play on');
  for (const { line, ends } of playOn(stage)) {
    if (!ends) continue;
    screen.command(line);
    const output = await stage.shell(line);
    screen.say(output.trimEnd(), 'quiet');
  }
}

async function wait(stage: Stage, screen: Screen): Promise<void> {
  screen.scene('Play on, in another terminal:');
  for (const line of exports(stage)) screen.suggestion(line);
  for (const { about, line } of playOn(stage)) {
    screen.say(`\n  # ${about}`, 'quiet');
    screen.suggestion(line);
  }
  screen.scene('What happens is shown here. Ctrl-C ends and removes everything.');
  const { signal } = stage;
  if (!signal.aborted) await once(signal, 'abort');
  if (!(signal.reason instanceof Interrupted)) throw signal.reason;
}

async function end(stage: Stage, folder: DemoFolder, screen: Screen): Promise<void> {
  screen.scene('Ending: manager, clusters, chart repository');
  await stage.stop();
  await folder.remove();
  screen.say('Everything has been stopped and removed.', 'good');
}

/** Cleans up after Ctrl-C in the middle (exit code 130) or after a failure (1), of which the logs stay. */
async function failed(
  error: unknown,
  parts: { stage: Stage | undefined; folder: DemoFolder | undefined; screen: Screen; signal: AbortSignal },
): Promise<number> {
  const { stage, folder, screen, signal } = parts;
  if (signal.aborted) {
    screen.say(`\n${messageOf(signal.reason)}; cleaning up`, 'busy');
    await stage?.stop();
    await folder?.remove();
    return 130;
  }
  screen.say(`\nFailed: ${messageOf(error)}`, 'bad');
  const logs = stage && folder ? await folder.keepLogs(stage.environment.directory) : undefined;
  if (folder && logs !== undefined) {
    screen.say(`The manager's log: ${folder.shown('manager.log')}; the clusters' logs: ${logs}`);
  }
  await stage?.stop();
  return 1;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2), process.env);
