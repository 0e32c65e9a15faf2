import { AlreadyExistsError, ConflictError, NetworkError, NotFoundError } from '../../kube/index.ts';
import type { KubeClient, KubeObject, ObjectKey, Resource, Scope } from '../../kube/index.ts';
import { fakeClient } from '../fakes.test-support.ts';

interface Limit {
  readonly timeoutMs?: number;
}

type Verb = 'create' | 'replace' | 'get' | 'list' | 'delete';

/** What happens to one call: how long its request and its answer travel, and which of both is lost. */
export interface Fate {
  readonly requestMs?: number;
  readonly answerMs?: number;
  readonly lost?: 'request' | 'answer';
}

/** A way from one process to the store. Time stands still on it while it is `stopped`: as after SIGSTOP, answers are not read. */
export class Line {
  fate: (verb: Verb) => Fate = () => ({});
  #stopped: PromiseWithResolvers<undefined> | undefined;

  stop(): void {
    this.#stopped ??= Promise.withResolvers<undefined>();
  }

  go(): void {
    this.#stopped?.resolve(undefined);
    this.#stopped = undefined;
  }

  get stopped(): boolean {
    return this.#stopped !== undefined;
  }

  async running(): Promise<void> {
    while (this.#stopped !== undefined) await this.#stopped.promise;
  }
}

/** Leases as an API server keeps them: optimistic locking, UIDs, reads that see all writes. */
export class LeaseServer {
  readonly leases = new Map<string, KubeObject>();
  readonly calls: string[] = [];
  #version = 0;

  client(line: Line): KubeClient {
    const call = async <T>(verb: Verb, limit: Limit | undefined, act: () => T): Promise<T> =>
      this.#call(line, { verb, limitMs: limit?.timeoutMs }, act);
    const client = {
      get: async (_: Resource, key: ObjectKey, options?: Limit) => call('get', options, () => this.#get(key)),
      list: async (_: Resource, scope: Scope, options?: Limit) =>
        call('list', options, () => ({ items: this.#list(scope), resourceVersion: '' })),
      create: async (_: Resource, object: KubeObject, options?: Limit) =>
        call('create', options, () => this.#create(object)),
      replace: async (_: Resource, object: KubeObject, options?: Limit) =>
        call('replace', options, () => this.#replace(object)),
      delete: async (_: Resource, key: ObjectKey, options?: Limit & { resourceVersion?: string }) =>
        call('delete', options, () => this.#delete(key, options?.resourceVersion)),
    };
    // The caller's type parameter is its word for what it stored.
    return fakeClient(client as Partial<KubeClient>);
  }

  put<T extends KubeObject>(object: T, uid: string): T {
    this.#version += 1;
    const stored = structuredClone(object);
    stored.metadata.resourceVersion = String(this.#version);
    stored.metadata.uid = uid;
    this.leases.set(object.metadata.name, stored);
    return structuredClone(stored);
  }

  async #call<T>(
    line: Line,
    { verb, limitMs = 1e9 }: { verb: Verb; limitMs: number | undefined },
    act: () => T,
  ): Promise<T> {
    this.calls.push(verb);
    const { requestMs = 1, answerMs = 1, lost } = line.fate(verb);
    const answered = (async () => {
      await sleep(requestMs);
      if (lost === 'request') return new Promise<never>(() => undefined);
      const outcome = attempt(act);
      await sleep(answerMs);
      return lost === 'answer' ? new Promise<never>(() => undefined) : outcome;
    })();
    const late = sleep(limitMs).then(() => {
      throw new NetworkError(`${verb}: no answer`);
    });
    const outcome = await Promise.race([answered, late]).catch(async (error: unknown) => {
      await line.running();
      throw error;
    });
    await line.running();
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  }

  #get({ name }: ObjectKey): KubeObject {
    const found = this.leases.get(name);
    if (found === undefined) throw new NotFoundError('it is not there');
    return structuredClone(found);
  }

  #list({ labelSelector = '' }: Scope): KubeObject[] {
    const [label = '', value] = labelSelector.split('=');
    return [...this.leases.values()]
      .filter(({ metadata }) => metadata.labels?.[label] === value)
      .map((lease) => structuredClone(lease));
  }

  #create(object: KubeObject): KubeObject {
    if (this.leases.has(object.metadata.name)) throw new AlreadyExistsError('it exists');
    return this.put(object, `uid-${this.#version}`);
  }

  #replace(object: KubeObject): KubeObject {
    const known = this.#get(object.metadata);
    if (known.metadata.resourceVersion !== object.metadata.resourceVersion) throw new ConflictError('it changed');
    return this.put(object, known.metadata.uid ?? '');
  }

  #delete({ name }: ObjectKey, resourceVersion: string | undefined): boolean {
    const known = this.leases.get(name);
    if (known === undefined) return false;
    if (resourceVersion !== undefined && known.metadata.resourceVersion !== resourceVersion)
      throw new ConflictError('it changed');
    return this.leases.delete(name);
  }
}

function attempt<T>(act: () => T): { value: T } | { error: unknown } {
  try {
    return { value: act() };
  } catch (error) {
    return { error };
  }
}

/** By the timers that a test fakes. */
async function sleep(ms: number): Promise<void> {
  await new Promise<void>((resolve) => {
    setTimeout(resolve, ms);
  });
}
