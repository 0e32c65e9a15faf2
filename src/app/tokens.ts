import type { ServiceIdentifier } from 'inversify';
import type { ChartStore, HelmEngine, HelmProcesses, ValuesRenderer } from '../helm/index.ts';
import type { Connection } from '../kube/index.ts';
import type { Strategy } from '../reconcilers/index.ts';
import type {
  Cluster,
  CurrentPermit,
  KubeEventRecorder,
  Provider,
  Runnable,
  ShardMember,
  SupervisedFleet,
} from '../runtime/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import type { Environment, ManagerOptions } from './options.ts';

function token<T>(name: string): ServiceIdentifier<T> {
  return Symbol(name);
}

/** What the container binds. `strategy` and `provider` may be bound many times: they are the plug-in points. */
export const TOKENS = {
  options: token<ManagerOptions>('options'),
  environment: token<Environment>('environment'),
  telemetry: token<Telemetry>('telemetry'),
  /** To the management cluster. */
  connection: token<Connection>('connection'),
  management: token<Cluster>('management'),
  /** This replica among those that share the clusters; undefined without --sharding. */
  shards: token<ShardMember | undefined>('shards'),
  currentPermit: token<CurrentPermit>('currentPermit'),
  fleet: token<SupervisedFleet>('fleet'),
  processes: token<HelmProcesses>('processes'),
  engine: token<HelmEngine>('engine'),
  charts: token<ChartStore>('charts'),
  values: token<ValuesRenderer>('values'),
  events: token<KubeEventRecorder>('events'),
  strategy: token<Strategy>('strategy'),
  provider: token<Provider>('provider'),
  reconcilers: token<readonly Runnable[]>('reconcilers'),
} as const;
