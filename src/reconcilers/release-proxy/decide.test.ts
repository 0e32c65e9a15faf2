import { describe, expect, it } from 'vitest';
import type { ReleaseStatus, ReleaseSummary } from '../../helm/index.ts';
import { decide } from './decide.ts';
import type { Desired, Recorded } from './decide.ts';
import type { Takeover } from './takeover.ts';

const desired: Desired = { chartVersion: '1.0.0', chartDigest: 'sha256:a', valuesDigest: 'sha256:v' };
const free: Takeover = { free: true, why: 'it is older than its time limit' };
const held: Takeover = { free: false, untilMs: 1_000 };

function observed(status: ReleaseStatus, parts: Partial<ReleaseSummary> = {}): ReleaseSummary {
  return {
    namespace: 'ns',
    name: 'app',
    revision: 3,
    status,
    chartName: 'chart',
    chartVersion: '1.0.0',
    valuesDigest: 'sha256:v',
    lastDeployed: '2026-01-01T00:00:00Z',
    description: '',
    recordUid: 'u',
    recordVersion: '1',
    ...parts,
  };
}

const ours: Recorded = { revision: 3, chartDigest: 'sha256:a', valuesDigest: 'sha256:v' };
const older: Recorded = { ...ours, revision: 2 };

interface Case {
  readonly name: string;
  readonly observed?: ReleaseSummary;
  readonly desired?: Partial<Desired>;
  readonly recorded?: Recorded;
  readonly held?: Takeover;
  readonly action: string;
}

const CASES: readonly Case[] = [
  { name: 'no record', action: 'install' },
  { name: 'as wanted', observed: observed('deployed'), action: 'none' },
  {
    name: 'as wanted, made by CAAPH or by hand: adopted',
    observed: observed('deployed'),
    recorded: {},
    action: 'none',
  },
  {
    name: 'another version',
    observed: observed('deployed', { chartVersion: '0.9.0' }),
    recorded: {},
    action: 'upgrade',
  },
  {
    name: 'an older version is wanted',
    observed: observed('deployed', { chartVersion: '2.0.0' }),
    recorded: {},
    action: 'upgrade',
  },
  {
    name: 'other values',
    observed: observed('deployed', { valuesDigest: 'sha256:w' }),
    recorded: {},
    action: 'upgrade',
  },
  {
    name: 'W3: values cleared',
    observed: observed('deployed', { valuesDigest: 'sha256:w' }),
    desired: { valuesDigest: 'sha256:empty' },
    recorded: { ...ours, valuesDigest: 'sha256:w' },
    action: 'upgrade',
  },
  {
    name: 'W3: values that Helm merged with older ones do not upgrade for ever',
    observed: observed('deployed', { valuesDigest: 'sha256:merged' }),
    recorded: ours,
    action: 'none',
  },
  {
    name: 'merged values of a revision that is not ours do',
    observed: observed('deployed', { valuesDigest: 'sha256:merged' }),
    recorded: older,
    action: 'upgrade',
  },
  {
    name: 'a version spelled otherwise in the chart than in the index',
    observed: observed('deployed', { chartVersion: 'v1.0.0' }),
    recorded: {},
    action: 'none',
  },
  {
    name: 'another version in the index than in the chart, but the very archive that we installed',
    observed: observed('deployed', { chartVersion: '7.7.7' }),
    recorded: ours,
    action: 'none',
  },
  {
    name: 'W32: published anew under the same version',
    observed: observed('deployed'),
    desired: { chartDigest: 'sha256:b' },
    recorded: ours,
    action: 'upgrade',
  },
  {
    name: 'published anew, but the digest of the deployed one is not known: adopted',
    observed: observed('deployed'),
    desired: { chartDigest: 'sha256:b' },
    recorded: { revision: 3 },
    action: 'none',
  },
  {
    name: 'published anew, but the repository tells no digest',
    observed: observed('deployed'),
    desired: { chartDigest: undefined },
    recorded: ours,
    action: 'none',
  },
  {
    name: 'an out-of-band upgrade to the same chart and values: adopted',
    observed: observed('deployed'),
    desired: { chartDigest: 'sha256:b' },
    recorded: older,
    action: 'none',
  },
  { name: 'failed', observed: observed('failed'), recorded: ours, action: 'upgrade' },
  { name: 'W20: superseded', observed: observed('superseded'), recorded: ours, action: 'upgrade' },
  { name: 'W20: unknown', observed: observed('unknown'), recorded: ours, action: 'recover' },
  {
    name: 'W20: uninstalled with its history kept',
    observed: observed('uninstalled'),
    recorded: ours,
    action: 'reinstall',
  },
  { name: 'uninstalling, left behind', observed: observed('uninstalling'), held: free, action: 'reinstall' },
  { name: 'uninstalling, perhaps by somebody', observed: observed('uninstalling'), held, action: 'wait' },
  { name: 'pending-install, left behind', observed: observed('pending-install'), held: free, action: 'recover' },
  { name: 'pending-upgrade, left behind', observed: observed('pending-upgrade'), held: free, action: 'recover' },
  { name: 'pending-rollback, left behind', observed: observed('pending-rollback'), held: free, action: 'recover' },
  {
    name: 'W16: pending-install, perhaps somebody else’s',
    observed: observed('pending-install'),
    held,
    action: 'wait',
  },
  {
    name: 'W16: pending-upgrade, perhaps somebody else’s',
    observed: observed('pending-upgrade'),
    held,
    action: 'wait',
  },
  {
    name: 'W16: pending-rollback, perhaps somebody else’s',
    observed: observed('pending-rollback'),
    held,
    action: 'wait',
  },
];

describe('decide', () => {
  it.each(CASES)('$name → $action', (given) => {
    const takeover = (): Takeover => {
      if (given.held === undefined) throw new Error('must not be asked');
      return given.held;
    };
    const decision = decide({ ...desired, ...given.desired }, given.observed, given.recorded ?? {}, takeover);
    expect(decision.action).toBe(given.action);
    expect(decision.reason).not.toBe('');
  });

  it('says until when it waits', () => {
    expect(decide(desired, observed('pending-upgrade'), {}, () => held)).toMatchObject({
      action: 'wait',
      untilMs: 1_000,
    });
  });
});
