import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { DriftReport, ObjectReport, ReleaseReport } from '../../src/app/drift/report.ts';
import type { TestCluster } from '../support/index.ts';
import { CommandError, runProgram } from '../support/index.ts';

const ROOT = join(import.meta.dirname, '../..');
const NODE = join(ROOT, 'node_modules/node/bin/node');
const MAIN = join(ROOT, 'src/main.ts');

/** What a run of `capstan drift` came to. */
export interface CliOutcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs `capstan drift` as a user does, in an environment of nothing but what is given. */
export async function capstanDrift(args: string[], env: Record<string, string> = {}): Promise<CliOutcome> {
  try {
    const line = [MAIN, 'drift', ...args];
    return { code: 0, out: await runProgram(NODE, line, { env: { HOME: '/nonexistent', ...env } }), err: '' };
  } catch (error) {
    if (!(error instanceof CommandError) || error.code === null) throw error;
    return { code: error.code, out: error.stdout, err: error.stderr };
  }
}

/** The same with -o json, parsed. */
export async function driftReport(
  args: string[],
  env?: Record<string, string>,
): Promise<{ readonly code: number; readonly report: DriftReport; readonly err: string }> {
  const { code, out, err } = await capstanDrift([...args, '-o', 'json'], env);
  return { code, report: JSON.parse(out) as DriftReport, err };
}

/** The one release of that name. */
export function releaseIn({ releases }: DriftReport, name: string): ReleaseReport {
  const found = releases.filter((release) => release.name === name);
  expect(found).toHaveLength(1);
  return found[0]!;
}

/** The one object of that kind in the release's details. */
export function objectIn({ details }: ReleaseReport, kind: string): ObjectReport {
  const found = details.filter((object) => object.kind === kind);
  expect(found).toHaveLength(1);
  return found[0]!;
}

/** Table rows by their words; cells that have blanks in them are one. */
export function rowsOf(table: string): string[][] {
  const [head = '', ...rest] = table.split('\n');
  const starts = [...head.matchAll(/\S+/g)].map(({ index }) => index);
  const rows = rest.slice(0, rest.indexOf(''));
  return rows.map((row) => starts.map((start, index) => row.slice(start, starts[index + 1]).trim()));
}

/** `helm install` or `helm upgrade` of a chart that is these manifests; those named `crds/…` are its CRDs. */
export async function haul(
  cluster: TestCluster,
  release: { name: string; namespace: string },
  templates: Record<string, string>,
  { args = ['install'], helm = 4 }: { args?: string[]; helm?: 3 | 4 } = {},
): Promise<void> {
  const directory = join(cluster.directory, `chart-${release.namespace}-${release.name}`);
  for (const folder of ['templates', 'crds']) await mkdir(join(directory, folder), { recursive: true });
  await writeFile(join(directory, 'Chart.yaml'), `apiVersion: v2\nname: ${release.name}\nversion: 1.0.0\n`);
  for (const [file, text] of Object.entries(templates)) {
    await writeFile(join(directory, file.startsWith('crds/') ? '' : 'templates', file), text);
  }
  const [command = 'install', ...flags] = args;
  const line = [command, release.name, directory, '-n', release.namespace, '--create-namespace', ...flags];
  await (helm === 3 ? cluster.helm3(line) : cluster.helm(line));
}

/** What most tests install: a Deployment, a Service, a ConfigMap with lines, a Secret. */
export const SHOP: Record<string, string> = {
  'deployment.yaml': `apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  replicas: 2
  selector: { matchLabels: { app: shop } }
  template:
    metadata: { labels: { app: shop } }
    spec:
      containers:
        - name: main
          image: shop:1
          resources: { limits: { cpu: 1000m, memory: 1Gi } }
`,
  'service.yaml': `apiVersion: v1
kind: Service
metadata:
  name: shop
spec:
  selector: { app: shop }
  ports: [{ port: 80 }]
`,
  'config.yaml': `apiVersion: v1
kind: ConfigMap
metadata:
  name: shop
data:
  lines: |
    one
    two
    three
    four
    five
    six
    seven
    eight
    nine
`,
  'secret.yaml': `apiVersion: v1
kind: Secret
metadata:
  name: shop
stringData:
  password: sesame-of-the-chart
`,
};
