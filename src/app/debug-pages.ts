import { Session } from 'node:inspector/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import type { Runnable } from '../runtime/index.ts';

/** Of a CPU profile, seconds: one that nobody stops must end. */
const PROFILE = { default: 10, most: 60 };

type Page = (query: URLSearchParams, signal: AbortSignal) => unknown;

export interface DebugAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * What `/debug/` shows: how clusters are, what the queues hold, and what the process itself does. All of it is bounded and
 * read only, and none of it holds values of releases, tokens or Secrets.
 */
export class DebugPages {
  readonly #pages: ReadonlyMap<string, Page>;
  #profiling = false;

  constructor(parts: { readonly fleet: Pick<Runnable, 'debug'>; readonly controllers: readonly Runnable[] }) {
    this.#pages = new Map<string, Page>([
      ['/debug/', () => [...this.#pages.keys()]],
      ['/debug/clusters', () => parts.fleet.debug?.() ?? []],
      ['/debug/queues', () => parts.controllers.flatMap((one) => one.debug?.() ?? [])],
      ['/debug/process', () => processState()],
      ['/debug/profile', async (query, signal) => this.#profile(query, signal)],
    ]);
  }

  has(path: string): boolean {
    return this.#pages.has(path);
  }

  /** The page as JSON. `signal` ends a profile early. */
  async read(path: string, query: URLSearchParams, signal: AbortSignal): Promise<DebugAnswer> {
    const page = this.#pages.get(path);
    const shown = await page?.(query, signal);
    if (isAnswer(shown)) return shown;
    return { status: 200, body: `${JSON.stringify(shown, undefined, 2)}\n` };
  }

  /** A CPU profile in Chrome's form (`.cpuprofile`), `?seconds=` long; one at a time. */
  async #profile(query: URLSearchParams, signal: AbortSignal): Promise<unknown> {
    const seconds = Number(query.get('seconds') ?? PROFILE.default);
    if (!(seconds > 0 && seconds <= PROFILE.most))
      return refusal(400, `seconds must be a number above 0 and at most ${PROFILE.most}`);
    if (this.#profiling) return refusal(409, 'a profile is being taken; try again when it is done');
    this.#profiling = true;
    const session = new Session();
    try {
      session.connect();
      await session.post('Profiler.enable');
      await session.post('Profiler.start');
      await sleep(seconds * 1_000, undefined, { signal });
      const { profile } = await session.post('Profiler.stop');
      return profile;
    } finally {
      session.disconnect();
      this.#profiling = false;
    }
  }
}

function processState(): unknown {
  const resources: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
  return {
    node: process.version,
    uptimeSeconds: Math.round(process.uptime()),
    memory: process.memoryUsage(),
    heap: getHeapStatistics(),
    resources,
  };
}

function refusal(status: number, error: string): DebugAnswer {
  return { status, body: `${JSON.stringify({ error })}\n` };
}

function isAnswer(value: unknown): value is DebugAnswer {
  return typeof value === 'object' && value !== null && 'status' in value && 'body' in value;
}
