import { describe, expect, it } from 'vitest';
import type { HelmReleaseProxyStatus } from '../../api/index.ts';
import type { ReleaseStatus, ReleaseSummary } from '../../helm/index.ts';
import { takeover } from './takeover.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const MINUTE = 60_000;
const TIMEOUT = 10 * MINUTE;

function ago(ms: number): string {
  return new Date(NOW - ms).toISOString();
}

function observed(status: ReleaseStatus, revision: number, lastDeployed: string): ReleaseSummary {
  return {
    namespace: 'ns',
    name: 'app',
    revision,
    status,
    chartName: 'chart',
    chartVersion: '1.0.0',
    valuesDigest: '',
    lastDeployed,
    description: '',
    recordUid: 'u',
    recordVersion: '1',
  };
}

function verdict(
  summary: ReleaseSummary,
  recorded: HelmReleaseProxyStatus | undefined,
  firstSeenMs = NOW,
): ReturnType<typeof takeover> {
  return takeover({ observed: summary, recorded, nowMs: NOW, timeoutMs: TIMEOUT, firstSeenMs });
}

describe('takeover', () => {
  const startedAt = ago(MINUTE);

  it('takes over what an earlier life of the controller wrote down', () => {
    const operation = { type: 'install', revision: 1, startedAt, timeoutSeconds: 600 };
    expect(verdict(observed('pending-install', 1, ago(50_000)), { operation })).toMatchObject({ free: true });
  });

  it('knows the rollback of an atomic upgrade for its own', () => {
    const operation = { type: 'upgrade', revision: 4, startedAt, timeoutSeconds: 600 };
    expect(verdict(observed('pending-rollback', 5, ago(1_000)), { operation })).toMatchObject({ free: true });
  });

  it('does not take another revision for its own', () => {
    const operation = { type: 'upgrade', revision: 4, startedAt, timeoutSeconds: 600 };
    expect(verdict(observed('pending-upgrade', 7, ago(1_000)), { operation })).toMatchObject({ free: false });
  });

  it('does not take for its own what began after its own must have ended', () => {
    const operation = { type: 'upgrade', revision: 4, startedAt: ago(60 * MINUTE), timeoutSeconds: 60 };
    expect(verdict(observed('pending-upgrade', 4, ago(1_000)), { operation })).toMatchObject({ free: false });
  });

  it.each(['pending-install', 'pending-upgrade', 'pending-rollback'] as const)(
    'recovers a record rewritten to %s at once: the revision had been deployed',
    (status) => {
      const recorded = { status: 'deployed', revision: 1 };
      expect(verdict(observed(status, 1, ago(5_000)), recorded)).toMatchObject({ free: true });
    },
  );

  it('waits for a new revision that nobody here began, and says until when', () => {
    const recorded = { status: 'deployed', revision: 1 };
    const untilMs = NOW - MINUTE + TIMEOUT;
    expect(verdict(observed('pending-upgrade', 2, ago(MINUTE)), recorded)).toEqual({ free: false, untilMs });
  });

  it('waits also without any record', () => {
    expect(verdict(observed('pending-install', 1, ago(MINUTE)), undefined)).toMatchObject({ free: false });
  });

  it('takes over what is older than the time limit', () => {
    expect(verdict(observed('pending-install', 1, ago(TIMEOUT + 1)), undefined)).toMatchObject({ free: true });
  });

  it('is not put off for ever by a clock that is ahead', () => {
    const summary = observed('pending-install', 1, ago(-60 * MINUTE));
    expect(verdict(summary, undefined)).toEqual({ free: false, untilMs: NOW + TIMEOUT });
  });

  it('counts from when it was first seen where the record does not tell', () => {
    const seen = NOW - MINUTE;
    expect(verdict(observed('pending-install', 1, ''), undefined, seen)).toEqual({
      free: false,
      untilMs: seen + TIMEOUT,
    });
    expect(verdict(observed('uninstalling', 1, ago(TIMEOUT * 100)), { status: 'deployed', revision: 1 }, seen)).toEqual(
      {
        free: false,
        untilMs: seen + TIMEOUT,
      },
    );
  });

  it('finishes an uninstall that it began itself', () => {
    const operation = { type: 'install', revision: 1, startedAt, timeoutSeconds: 600 };
    expect(verdict(observed('uninstalling', 3, ago(TIMEOUT)), { operation })).toMatchObject({ free: true });
  });
});
