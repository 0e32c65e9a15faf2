import type { ClusterAbout, ClusterName, ClusterSink, ConnectionSpec, NotConnectedReason } from '../types.ts';
import type { Shards } from './types.ts';

/** Of a cluster that another replica serves: what asking for it here is answered. */
export const NOT_MY_SHARD: NotConnectedReason = { code: 'NotMyShard', message: 'another replica serves it' };

/** The fleet's side of a sink: what is known of a cluster apart from what is done with it. */
export interface EngagementSink {
  /** The cluster is declared. False: another provider has the name, and the declaration is void. */
  declared(name: ClusterName, about: ClusterAbout | undefined): boolean;
  discover(name: ClusterName, reason: NotConnectedReason): void;
  engage(name: ClusterName, spec: ConnectionSpec): void;
  /** Its engagement ends; it is declared all the same. */
  withdraw(name: ClusterName, reason: string): void;
  /** Nobody declares it any more. */
  disengage(name: ClusterName, reason: string): void;
  /** All that there is has been declared. */
  synced(): void;
}

type Declaration =
  | { readonly type: 'discover'; readonly reason: NotConnectedReason }
  | { readonly type: 'engage'; readonly spec: ConnectionSpec };

interface Declared {
  declaration: Declaration;
  served: boolean;
}

/** Between a provider and the fleet: all that is declared is known, what this replica serves is engaged. */
export class ShardedSink implements ClusterSink {
  readonly #shards: Shards;
  readonly #fleet: EngagementSink;
  readonly #declared = new Map<ClusterName, Declared>();
  readonly #onMove: (direction: 'in' | 'out') => void;

  /** `onMove` is told when a declared cluster begins or ends to be served here. */
  constructor(shards: Shards, fleet: EngagementSink, onMove: (direction: 'in' | 'out') => void = () => undefined) {
    this.#shards = shards;
    this.#fleet = fleet;
    this.#onMove = onMove;
  }

  discover(name: ClusterName, reason: NotConnectedReason, about?: ClusterAbout): void {
    this.#declare(name, { type: 'discover', reason }, about);
  }

  engage(name: ClusterName, spec: ConnectionSpec, about?: ClusterAbout): void {
    this.#declare(name, { type: 'engage', spec }, about);
  }

  disengage(name: ClusterName, reason: string): void {
    const known = this.#declared.get(name);
    this.#declared.delete(name);
    if (known?.served === true) this.#onMove('out');
    this.#fleet.disengage(name, reason);
  }

  synced(): void {
    this.#fleet.synced();
  }

  /** How to reach a declared cluster, also one that another replica serves. */
  specOf(name: ClusterName): ConnectionSpec | undefined {
    const declaration = this.#declared.get(name)?.declaration;
    return declaration?.type === 'engage' ? declaration.spec : undefined;
  }

  /** The members changed, or the fence was lost: engages and lets go of what that concerns. */
  settle(): void {
    for (const [name, known] of this.#declared) {
      const serves = this.#shards.serves(name);
      if (serves === known.served) continue;
      known.served = serves;
      this.#onMove(serves ? 'in' : 'out');
      if (serves) this.#pass(name, known.declaration);
      else this.#fleet.withdraw(name, NOT_MY_SHARD.message);
    }
  }

  #declare(name: ClusterName, declaration: Declaration, about: ClusterAbout | undefined): void {
    if (!this.#fleet.declared(name, about)) return;
    const known = this.#declared.get(name);
    if (known === undefined) {
      const served = this.#shards.serves(name);
      this.#declared.set(name, { declaration, served });
      if (served) this.#onMove('in');
      if (served) this.#pass(name, declaration);
      return;
    }
    known.declaration = declaration;
    if (known.served) this.#pass(name, declaration);
  }

  #pass(name: ClusterName, declaration: Declaration): void {
    if (declaration.type === 'engage') this.#fleet.engage(name, declaration.spec);
    else this.#fleet.discover(name, declaration.reason);
  }
}

/** A single replica's: all that is declared is engaged. */
export function plainSink(fleet: EngagementSink): ClusterSink {
  return {
    discover: (name, reason, about) => {
      if (fleet.declared(name, about)) fleet.discover(name, reason);
    },
    engage: (name, spec, about) => {
      if (fleet.declared(name, about)) fleet.engage(name, spec);
    },
    disengage: (name, reason) => fleet.disengage(name, reason),
    synced: () => fleet.synced(),
  };
}
