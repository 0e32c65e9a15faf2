/** Metrics that take a label and do not tell it, so that those who count need not know whether it is told. */
import { Counter, Gauge } from 'prom-client';
import type {
  CounterConfiguration,
  GaugeConfiguration,
  IncreaseDataWithExemplar,
  LabelValues,
  MetricObjectWithValues,
  MetricValue,
} from 'prom-client';

/** Counts what differs by the label together. */
export class CountedTogether<L extends string> extends Counter<L> {
  readonly #untold: string;

  constructor(options: CounterConfiguration<L>, untold: string) {
    super(options);
    this.#untold = untold;
    // prom-client's constructor puts `inc` on the object itself, where a method of this class would not be seen.
    const count = this.inc.bind(this);
    this.inc = (first?: LabelValues<L> | number | IncreaseDataWithExemplar<L>, value?: number): void => {
      if (first === undefined || typeof first === 'number') count(first);
      else count(this.#rest(first as LabelValues<L>), value);
    };
  }

  /** What was counted of one value of the label stays counted: a counter that goes down reads as a restart. */
  override remove(...labels: string[]): void;
  override remove(labels: LabelValues<L>): void;
  override remove(first: LabelValues<L> | string, ...more: string[]): void {
    if (typeof first === 'string') super.remove(first, ...more);
    else if (!(this.#untold in first)) super.remove(first);
  }

  #rest(labels: LabelValues<L>): LabelValues<L> {
    const rest: LabelValues<L> = { ...labels };
    Reflect.deleteProperty(rest, this.#untold);
    return rest;
  }
}

/** Keeps a value for each value of the label, and tells their sum. */
export class SummedGauge<L extends string> extends Gauge<L> {
  readonly #untold: string;

  constructor(options: GaugeConfiguration<L>, untold: string) {
    super(options);
    this.#untold = untold;
  }

  /** What the sums are made of. */
  async parts(): Promise<MetricObjectWithValues<MetricValue<L>>> {
    return super.get();
  }

  override async get(): Promise<MetricObjectWithValues<MetricValue<L>>> {
    const parts = await super.get();
    const sums = new Map<string, MetricValue<L>>();
    for (const { value, labels } of parts.values) {
      const told: LabelValues<L> = { ...labels };
      Reflect.deleteProperty(told, this.#untold);
      const key = JSON.stringify(Object.entries(told).sort());
      sums.set(key, { value: (sums.get(key)?.value ?? 0) + value, labels: told });
    }
    return { ...parts, values: [...sums.values()] };
  }
}
