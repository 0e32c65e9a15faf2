/** `node main.ts <kubeconfig files, directories or globs>`: a controller of one's own on many clusters. Ctrl-C ends it. */
import {
  Controller,
  createLogger,
  createTelemetry,
  kubeconfig,
  kubeConnectionFactory,
  Manager,
  SupervisedFleet,
} from 'capstan';
import { ClusterFacts, clusterFactsSource } from './cluster-facts.ts';

const paths = process.argv.slice(2);
if (paths.length === 0) {
  process.stderr.write('usage: node main.ts <kubeconfig file, directory or glob>…\n');
  process.exit(2);
}

const telemetry = createTelemetry({ log: createLogger({ format: 'text', level: 'info' }) });
const fleet = new SupervisedFleet({ telemetry, factory: kubeConnectionFactory({ telemetry }) });
const controller = new Controller({
  name: 'cluster-facts',
  telemetry,
  fleet,
  reconciler: new ClusterFacts(fleet, 'example'),
  sources: [clusterFactsSource(fleet)],
});
const provider = new kubeconfig.KubeconfigFileProvider({ paths, telemetry });
const manager = new Manager({ telemetry, fleet, providers: [provider], controllers: [controller] });

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
await manager.run(stop.signal);
