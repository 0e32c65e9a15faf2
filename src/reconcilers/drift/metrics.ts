/** What dashboards see of drift. */
import type { Registry } from 'prom-client';
import { counter, histogram } from '../../telemetry/index.ts';

/** Upper bounds, seconds: an event takes tens of milliseconds, and a correction that waits its turn up to five minutes. */
const BUCKETS = [0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 15, 60, 300] as const;

export class DriftMetrics {
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  detected(cluster: string): void {
    const help = 'Objects of releases that were found not to be as their manifest has them';
    counter(this.#registry, 'capstan_drift_detected_total', help, ['cluster']).inc({ cluster });
  }

  /** `ms` from the event that told of the drift to the server's answer to the correction. */
  corrected(cluster: string, ms: number): void {
    const help = 'Objects of releases that were put back';
    counter(this.#registry, 'capstan_drift_corrected_total', help, ['cluster']).inc({ cluster });
    const timeHelp = "Seconds from the event that told of drift to the server's answer to its correction";
    const name = 'capstan_drift_detect_to_correct_seconds';
    histogram(this.#registry, name, timeHelp, [], BUCKETS).observe(ms / 1000);
  }

  dryRun(cluster: string): void {
    const help = 'Server-side-apply dry runs sent to find out whether an object differs';
    counter(this.#registry, 'capstan_drift_dry_runs_total', help, ['cluster']).inc({ cluster });
  }
}
