import type { Counter, Gauge, Registry } from 'prom-client';
import { counter, gauge } from '../../telemetry/index.ts';
import type { ClusterName, ClusterSink, ConnectionSpec } from '../types.ts';
import { ShardedSink } from './sharded-sink.ts';
import type { EngagementSink } from './sharded-sink.ts';
import type { Shards } from './types.ts';

/** A fleet's share: its sinks, kept in step with what this replica serves. */
export class FleetShards {
  readonly shards: Shards;
  readonly #sinks: ShardedSink[] = [];
  readonly #unlisten: () => void;
  readonly #served: Gauge;
  readonly #moves: Counter<'direction'>;
  #count = 0;

  constructor(shards: Shards, metrics: Registry) {
    this.shards = shards;
    this.#served = gauge(metrics, 'capstan_shard_clusters', 'Declared clusters that this replica serves', []);
    this.#served.set(0);
    this.#moves = counter(
      metrics,
      'capstan_shard_handovers_total',
      'Declared clusters that this replica began (in) or ended (out) to serve',
      ['direction'],
    );
    this.#unlisten = shards.onChange(() => {
      for (const sink of this.#sinks) sink.settle();
    });
  }

  sink(fleet: EngagementSink): ClusterSink {
    const sink = new ShardedSink(this.shards, fleet, (direction) => {
      this.#count += direction === 'in' ? 1 : -1;
      this.#served.set(this.#count);
      this.#moves.inc({ direction });
    });
    this.#sinks.push(sink);
    return sink;
  }

  /** How to reach a declared cluster, whoever serves it. */
  specOf(name: ClusterName): ConnectionSpec | undefined {
    for (const sink of this.#sinks) {
      const spec = sink.specOf(name);
      if (spec !== undefined) return spec;
    }
    return undefined;
  }

  close(): void {
    this.#unlisten();
  }
}
