import type { Proxy } from '../../test/support/index.ts';
import { condition } from '../../test/support/index.ts';
import type { Tone } from './screen.ts';

/** What the demo says of a HelmReleaseProxy. */
export interface ReleaseLine {
  text: string;
  tone: Tone;
}

interface Status extends NonNullable<Proxy['status']> {
  chartVersion?: string;
  operation?: { type?: string; revision?: number };
}

/** Characters of a message that a line of a terminal has room for. */
const MESSAGE_WIDTH = 160;

/** A HelmReleaseProxy's state in a few words. */
export function releaseLine(proxy: Proxy): ReleaseLine {
  const status = (proxy.status ?? {}) as Status;
  if (proxy.metadata.deletionTimestamp !== undefined) return { text: 'uninstalling', tone: 'busy' };
  if (isDeployed(proxy)) {
    const chart = status.chartVersion === undefined ? '' : `, chart ${status.chartVersion}`;
    return { text: `deployed, revision ${status.revision ?? '?'}${chart}`, tone: 'good' };
  }
  const available = condition(proxy, 'ClusterAvailable');
  if (available?.status === 'False')
    return { text: `waits for its cluster: ${brief(available.message)}`, tone: 'busy' };
  if (status.operation !== undefined) {
    return { text: `pending: helm ${status.operation.type ?? ''} runs`, tone: 'busy' };
  }
  const ready = condition(proxy, 'HelmReleaseReady');
  if (ready?.reason === 'HelmInstallOrUpgradeFailed') return { text: `failed: ${brief(ready.message)}`, tone: 'bad' };
  return { text: status.revision === undefined ? 'pending' : 'pending: an upgrade is due', tone: 'busy' };
}

/** Ready, and for what the object says now. */
export function isDeployed(proxy: Proxy): boolean {
  const current = proxy.status?.observedGeneration === proxy.metadata.generation;
  return current && condition(proxy, 'Ready')?.status === 'True';
}

function brief(message: string): string {
  const line = message.replaceAll(/\s+/g, ' ');
  return line.length > MESSAGE_WIDTH ? `${line.slice(0, MESSAGE_WIDTH)}…` : line;
}
