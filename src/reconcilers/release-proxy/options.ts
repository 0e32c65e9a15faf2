/** What an object's `options` mean for Helm, with defaults filled in (caaph §1.2, §1.11). */
import type { HelmOptionsSpec } from '../../api/index.ts';
import type { HelmOptions } from '../../helm/index.ts';
import { parseDuration } from '../../kube/index.ts';

/** Milliseconds; CAAPH's webhook default. Also for a timeout that is no positive Go duration, which CAAPH's type refuses anyway. */
export const DEFAULT_HELM_TIMEOUT_MS = 600_000;
/** Revisions kept; CAAPH's CRD default. */
const DEFAULT_MAX_HISTORY = 10;

/**
 * The effective options of one object. `atomic` implies `wait`, as Helm and CAAPH's webhook have it. A `false` or 0 that
 * stands in the object stays (caaph W6). Pure.
 */
export function helmOptions(spec: HelmOptionsSpec | undefined): HelmOptions {
  const { timeout, options: subNotes, wait, atomic, install, upgrade, uninstall, ...flags } = spec ?? {};
  return {
    disableHooks: flags.disableHooks,
    waitForJobs: flags.waitForJobs,
    dependencyUpdate: flags.dependencyUpdate,
    skipCRDs: flags.skipCRDs,
    disableOpenAPIValidation: flags.disableOpenAPIValidation,
    takeOwnership: flags.takeOwnership,
    atomic,
    wait: wait === true || atomic === true,
    subNotes,
    timeoutMs: timeoutMs(timeout),
    install: { createNamespace: install?.createNamespace ?? true, includeCRDs: install?.includeCRDs },
    upgrade: { ...upgrade, maxHistory: upgrade?.maxHistory ?? DEFAULT_MAX_HISTORY },
    uninstall: { ...uninstall },
  };
}

/** Does an operation with these options wait for workloads, so that it must not hold a worker of the common pool (caaph W28)? */
export function waits(options: HelmOptions): boolean {
  return options.wait === true || options.waitForJobs === true || options.atomic === true;
}

function timeoutMs(text: string | undefined): number {
  const parsed = text === undefined ? undefined : parseDuration(text);
  return parsed !== undefined && parsed > 0 ? parsed : DEFAULT_HELM_TIMEOUT_MS;
}
