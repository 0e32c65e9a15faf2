import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { reconcilers } from 'capstan';
import { maintenanceWindow } from './maintenance-window.ts';
import { Window } from './window.ts';

const at = (text: string): number => Date.parse(`${text}Z`);
const HOUR_MS = 3_600_000;

describe('a window', () => {
  // 2026-01-03 is a Saturday.
  for (const [text, now, hours] of [
    ['* 02:00-04:00', '2026-01-01T02:00', 0],
    ['* 02:00-04:00', '2026-01-01T03:59', 0],
    ['* 02:00-04:00', '2026-01-01T04:00', 22],
    ['* 02:00-04:00', '2026-01-01T01:00', 1],
    ['* 22:00-04:00', '2026-01-01T03:00', 0],
    ['Sat,Sun 22:00-04:00', '2026-01-03T21:00', 1],
    ['Sat 22:00-04:00', '2026-01-04T03:00', 0],
    ['Sat 22:00-04:00', '2026-01-04T04:00', 6 * 24 + 18],
  ] as const) {
    test(`${text} opens at ${now} in ${String(hours)} h`, () => {
      assert.equal(new Window(text).opensInMs(at(now)), hours * HOUR_MS);
    });
  }

  for (const text of ['', 'Sat', 'Samstag 02:00-04:00', '* 25:00-04:00', '* 2:00-4:00']) {
    test(`"${text}" is refused`, () => {
      assert.throws(() => new Window(text), /window|day/);
    });
  }
});

describe('the strategy', () => {
  const release = { name: 'web', status: 'deployed' } as unknown as reconcilers.Deployment['release'];

  async function reconcile(now: string, releaseName: string): Promise<[reconcilers.Deployment, string[]]> {
    const calls: string[] = [];
    const context = {
      proxy: { spec: { releaseName, namespace: 'apps' } },
      reconcile: { signal: new AbortController().signal },
      reader: {
        newest: async (key: { namespace: string; name: string }) => {
          calls.push(`newest ${key.namespace}/${key.name}`);
          return Promise.resolve(release);
        },
      },
      installOrUpgrade: async () => {
        calls.push('installOrUpgrade');
        return Promise.resolve({ release, action: 'upgrade', reason: '' } as const);
      },
    } as unknown as reconcilers.ReleaseContext;
    const strategy = maintenanceWindow({ name: 'x', window: new Window('* 02:00-04:00'), now: () => at(now) });
    return [await strategy.reconcile(context), calls];
  }

  test('does what Continuous does while the window is open', async () => {
    const [deployment, calls] = await reconcile('2026-01-01T03:00', 'web');
    assert.deepEqual([deployment.action, calls], ['upgrade', ['installOrUpgrade']]);
  });

  test('changes nothing outside it, says what it waits for, and comes back when it opens', async () => {
    const [deployment, calls] = await reconcile('2026-01-01T01:00', 'web');
    assert.deepEqual(calls, ['newest apps/web']);
    assert.deepEqual(deployment, {
      release,
      action: 'wait',
      reason: 'changes wait for the window * 02:00-04:00 UTC',
      requeueAfterMs: HOUR_MS + 1_000,
    });
  });

  test('reads nothing for a release that has no name yet', async () => {
    const [deployment, calls] = await reconcile('2026-01-01T01:00', '');
    assert.deepEqual([deployment.release, calls], [undefined, []]);
  });
});
