import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ForbiddenError, ServerError } from '../kube/index.ts';
import type { KubeObject } from '../kube/index.ts';
import { KubeEventRecorder } from './event-recorder.ts';
import { FakeStore, metricValues, testTelemetry } from './fakes.test-support.ts';

const about = {
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  metadata: { namespace: 'ns', name: 'thing', uid: 'uid-1' },
};
const fact = { type: 'Normal', reason: 'Installed', message: 'done', action: 'Install' } as const;
const after = async (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

type Event = KubeObject & { count: number; message: string; reason: string };

let store: FakeStore;
let recorder: KubeEventRecorder;
let end: AbortController;
let done: Promise<void>;
let test: ReturnType<typeof testTelemetry>;

function events(): Event[] {
  return [...store.objects.values()] as Event[];
}

function calls(verb: string): number {
  return store.calls.filter((call) => call.startsWith(verb)).length;
}

beforeEach(() => {
  vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05.678Z') });
  store = new FakeStore();
  test = testTelemetry();
  recorder = new KubeEventRecorder({
    client: store.client,
    telemetry: test.telemetry,
    component: 'me',
    instance: 'me-0',
  });
  end = new AbortController();
  done = recorder.run(end.signal);
});
afterEach(async () => {
  end.abort();
  await after(10_000);
  await done;
  vi.useRealTimers();
});

it('writes an Event as kubectl describe shows it', async () => {
  recorder.record(about, fact);
  await after(0);
  expect(events()).toEqual([
    {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: {
        namespace: 'ns',
        name: expect.stringMatching(/^thing\.[0-9a-f]{16}$/) as string,
        resourceVersion: '1',
      },
      involvedObject: {
        apiVersion: 'example.com/v1',
        kind: 'Thing',
        namespace: 'ns',
        name: 'thing',
        uid: 'uid-1',
      },
      type: 'Normal',
      reason: 'Installed',
      message: 'done',
      action: 'Install',
      count: 1,
      firstTimestamp: '2026-01-02T03:04:05Z',
      lastTimestamp: '2026-01-02T03:04:05Z',
      source: { component: 'me' },
      reportingComponent: 'me',
      reportingInstance: 'me-0',
    },
  ]);
});

describe('the same fact again', () => {
  it('before it was written is one Event with a count', async () => {
    for (let i = 0; i < 5; i += 1) recorder.record(about, fact);
    await after(0);
    expect(events()).toMatchObject([{ count: 5 }]);
    expect(calls('create')).toBe(1);
  });

  it('later raises the count of the Event', async () => {
    recorder.record(about, fact);
    await after(60_000);
    recorder.record(about, fact);
    await after(0);
    expect(events()).toMatchObject([{ count: 2, lastTimestamp: '2026-01-02T03:05:05Z' }]);
    expect(calls('create')).toBe(1);
  });

  it('after the Event has run out is a new one', async () => {
    recorder.record(about, fact);
    await after(0);
    store.objects.clear();
    recorder.record(about, fact);
    await after(0);
    expect(events()).toMatchObject([{ count: 1 }]);
  });

  it('of another object or with another message is another Event', async () => {
    recorder.record(about, fact);
    recorder.record({ ...about, metadata: { ...about.metadata, uid: 'uid-2' } }, fact);
    recorder.record(about, { ...fact, message: 'other' });
    await after(0);
    expect(events()).toHaveLength(3);
  });
});

describe('bounds', () => {
  it('hold back an object that has too much to say, and no other', async () => {
    for (let i = 0; i < 100; i += 1) recorder.record(about, { ...fact, message: `${i}` });
    recorder.record({ ...about, metadata: { namespace: 'ns', name: 'other' } }, fact);
    await after(0);
    expect(events()).toHaveLength(26);
    expect(await metricValues(test.telemetry, 'capstan_events_dropped_total')).toEqual({ '{"cause":"rate"}': 75 });
    await after(300_000);
    recorder.record(about, { ...fact, message: 'later' });
    await after(0);
    expect(events()).toHaveLength(27);
  });

  it('cut a message to 1,024 bytes without cutting a character', async () => {
    recorder.record(about, { ...fact, message: 'ü'.repeat(2_000) });
    await after(0);
    const [event] = events();
    expect(Buffer.byteLength(event!.message)).toBeLessThanOrEqual(1_024);
    expect(event!.message).toMatch(/^ü+…$/);
  });

  it('drop what comes while a thousand wait', async () => {
    let answer = (): void => undefined;
    store.before = async () => new Promise<void>((resolve) => (answer = resolve));
    for (let i = 0; i < 1_200; i += 1) recorder.record({ ...about, metadata: { name: `o${i}` } }, fact);
    expect(await metricValues(test.telemetry, 'capstan_events_dropped_total')).toEqual({ '{"cause":"full"}': 200 });
    store.before = () => undefined;
    answer();
    await after(0);
    expect(events()).toHaveLength(1_000);
  });
});

describe('a failure', () => {
  it('of the server is tried again, three times in all', async () => {
    store.before = () => {
      throw new ServerError('500');
    };
    recorder.record(about, fact);
    await after(60_000);
    expect(calls('create')).toBe(3);
    expect(test.log.of('an event could not be written')).toHaveLength(1);
    store.before = () => undefined;
    recorder.record(about, fact);
    await after(0);
    expect(events()).toHaveLength(1);
  });

  it('that stays is not tried again, and the next Event is written', async () => {
    store.before = (_verb, key) => {
      if (key.name.startsWith('thing')) throw new ForbiddenError('the namespace is being terminated');
    };
    recorder.record(about, fact);
    recorder.record({ ...about, metadata: { name: 'other' } }, fact);
    await after(0);
    expect(calls('create')).toBe(2);
    expect(events()).toHaveLength(1);
  });
});

it('writes what waits before it ends', async () => {
  recorder.record(about, fact);
  end.abort();
  await done;
  expect(events()).toHaveLength(1);
});
