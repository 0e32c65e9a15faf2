import type { reconcilers } from 'capstan';
import type { Window } from './window.ts';

/** Beyond the opening, so that the next pass is surely within. Milliseconds. */
const AFTERWARDS_MS = 1_000;

export interface MaintenanceWindowOptions {
  /** What objects say in `reconcileStrategy`; with a domain of yours before it. */
  readonly name: string;
  readonly window: Window;
  readonly now?: () => number;
}

/**
 * As Continuous, but the chart is only installed and upgraded while the window is open. Outside it a pass reads the
 * release, says in the condition what is waited for, and asks to be called again when the window opens; an operation that
 * began within goes on past its end. Uninstalling, when the cluster no longer matches or the object is deleted, and
 * putting back what drifted do not wait: neither brings anything new to the cluster.
 */
export function maintenanceWindow(options: MaintenanceWindowOptions): reconcilers.Strategy {
  const { name, window, now = Date.now } = options;
  return {
    name,
    // The release stays in our hands for as long as its object lives.
    handedOff: () => false,
    reconcile: async (context) => {
      const opensInMs = window.opensInMs(now());
      if (opensInMs === 0) return context.installOrUpgrade();
      return {
        release: await observed(context),
        action: 'wait',
        reason: `changes wait for the window ${window.text} UTC`,
        requeueAfterMs: opensInMs + AFTERWARDS_MS,
      };
    },
    detectsDrift: true,
    uninstallsOnDelete: true,
    followsSelector: true,
  };
}

/** The release as it is. Needed for the status: a pass that returns none says that there is none. */
async function observed(context: reconcilers.ReleaseContext): Promise<reconcilers.Deployment['release']> {
  const { releaseName, namespace } = context.proxy.spec;
  // A release that gets its name from Helm has none before it is installed.
  if (releaseName === undefined || releaseName === '') return undefined;
  const key = { name: releaseName, namespace: namespace ?? 'default' };
  return context.reader.newest(key, { signal: context.reconcile.signal });
}
