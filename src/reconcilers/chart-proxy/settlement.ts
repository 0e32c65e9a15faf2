/** Where the outcome of a placement goes: into memory, and from there into the status of its HelmChartProxy and an Event. */
import type { HelmChartProxy } from '../../api/index.ts';
import type { EventRecorder } from '../../runtime/index.ts';
import { bounded } from '../conditions.ts';
import { keyOf } from './fleet-view.ts';
import type { NamedIn } from './naming.ts';
import type { Outcome, Outcomes } from './outcomes.ts';

export interface SettlementParts {
  readonly outcomes: Outcomes;
  readonly events: EventRecorder;
  /** Told when the status of a HelmChartProxy has something new to say; `now`: what would be over before its turn comes. */
  readonly touch: (chartProxy: NamedIn, now?: boolean) => void;
}

/** One placement, as far as its outcome is concerned. */
export interface Settled {
  readonly chartProxy: HelmChartProxy;
  /** Name of the Cluster. */
  readonly cluster: string;
  /** Nothing is placed there any more: what is done is forgotten. */
  readonly over: boolean;
}

/** Characters of an Event's message. */
const MAX_EVENT = 1000;

export class Settlement {
  readonly #parts: SettlementParts;

  constructor(parts: SettlementParts) {
    this.#parts = parts;
  }

  /** Notes the outcome (undefined: none yet). Nothing is told when it says what was known. */
  settle(of: Settled, outcome: Outcome | undefined): void {
    const { chartProxy, cluster, over } = of;
    const { uid = '', generation = 0 } = chartProxy.metadata;
    const { outcomes } = this.#parts;
    if (over && (outcome === undefined || outcome.state === 'done')) {
      if (outcomes.drop(uid, cluster)) this.#parts.touch(keyOf(chartProxy));
      return;
    }
    if (outcome === undefined) return;
    // Once per wave of reinstallations: the rate stays bounded however many clusters there are.
    const now = outcome.state === 'reinstalling' && !outcomes.has(uid, 'reinstalling');
    if (outcomes.settle(uid, cluster, { generation, outcome })) this.#tell(chartProxy, outcome, now);
  }

  #tell(chartProxy: HelmChartProxy, outcome: Outcome, now: boolean): void {
    if (outcome.state === 'failed') {
      const message = bounded(outcome.message, MAX_EVENT);
      this.#parts.events.record(chartProxy, { type: 'Warning', reason: outcome.reason, message, action: 'Place' });
    }
    this.#parts.touch(keyOf(chartProxy), now);
  }
}
