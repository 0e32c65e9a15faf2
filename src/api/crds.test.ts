import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { API_GROUP, API_VERSION, HCP_KIND, HRP_KIND } from './names.ts';

interface Schema {
  type?: string;
  description?: string;
  default?: unknown;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  'x-kubernetes-validations'?: { rule: string; message: string }[];
}

interface Crd {
  metadata: { name: string; labels: Record<string, string>; annotations?: Record<string, string> };
  spec: {
    group: string;
    conversion?: unknown;
    names: { kind: string; plural: string; shortNames: string[]; categories?: string[] };
    versions: { name: string; subresources: object; schema: { openAPIV3Schema: Schema } }[];
  };
}

const KINDS = [
  { kind: HCP_KIND, plural: 'helmchartproxies', shortName: 'hcp' },
  { kind: HRP_KIND, plural: 'helmreleaseproxies', shortName: 'hrp' },
] as const;

const MANIFESTS = new Map(KINDS.map(({ plural }) => [plural as string, parse(read(`crds/${plural}.yaml`)) as Crd]));

function read(file: string): string {
  return readFileSync(join(import.meta.dirname, file), 'utf8');
}

function manifest(plural: string): Crd {
  const crd = MANIFESTS.get(plural);
  if (!crd) throw new Error(`no manifest of ${plural}`);
  return crd;
}

/** The schema at a path; `[]` stands for an array's items. */
function field(plural: string, path: string): Schema {
  const root = manifest(plural).spec.versions[0]?.schema.openAPIV3Schema ?? {};
  return path.split('.').reduce((schema, key) => {
    const found = schema.properties?.[key.replace('[]', '')] ?? {};
    return key.endsWith('[]') ? (found.items ?? {}) : found;
  }, root);
}

/** Every path below a schema, with its schema; `[]` stands for an array's items. */
function paths(schema: Schema, prefix = ''): [string, Schema][] {
  const children: [string, Schema][] = Object.entries(schema.properties ?? {}).map(([key, child]) => [
    `${prefix}.${key}`,
    child,
  ]);
  if (schema.items?.properties) children.push([`${prefix}[]`, schema.items]);
  return children.flatMap(([path, child]) => [[path, child], ...paths(child, path)]);
}

describe.each(KINDS)('the CRD of $kind', ({ kind, plural, shortName }) => {
  const crd = manifest(plural);

  it('has the identity of the one it replaces', () => {
    expect(crd.metadata.name).toBe(`${plural}.${API_GROUP}`);
    expect(crd.spec.group).toBe(API_GROUP);
    expect(crd.spec.names).toMatchObject({ kind, plural, shortNames: [shortName] });
    expect(crd.spec.names.categories).toBeUndefined();
    expect(crd.spec.versions.map(({ name }) => name)).toEqual([API_VERSION]);
    expect(crd.spec.versions[0]?.subresources).toEqual({ status: {} });
  });

  it('asks for no webhook and no certificate', () => {
    expect(crd.spec.conversion).toBeUndefined();
    expect(crd.metadata.annotations).toBeUndefined();
  });

  it('carries the labels by which clusterctl and the visualizer find it', () => {
    expect(crd.metadata.labels).toMatchObject({
      'cluster.x-k8s.io/provider': 'helm',
      'clusterctl.cluster.x-k8s.io': '',
      'visualizer.cluster.x-k8s.io': '',
    });
    // HelmReleaseProxies move as children of their HelmChartProxy, and only so.
    expect('clusterctl.cluster.x-k8s.io/move-hierarchy' in crd.metadata.labels).toBe(kind === HCP_KIND);
  });

  it('describes every field', () => {
    const silent = paths(crd.spec.versions[0]?.schema.openAPIV3Schema ?? {})
      .filter(([path]) => path !== '.metadata')
      .filter(([, schema]) => (schema.description ?? '').length < 5)
      .map(([path]) => path);
    expect(silent).toEqual([]);
  });

  it('defaults what hangs below a default, so that it applies where the parent is absent', () => {
    expect(field(plural, 'spec.namespace').default).toBe('default');
    for (const parent of ['options', 'options.install', 'options.upgrade']) {
      expect(field(plural, `spec.${parent}`).default).toEqual({});
    }
    expect(field(plural, 'spec.options.timeout').default).toBe('10m0s');
    expect(field(plural, 'spec.options.enableClientCache').default).toBe(false);
    expect(field(plural, 'spec.options.install.createNamespace').default).toBe(true);
    expect(field(plural, 'spec.options.upgrade.maxHistory').default).toBe(10);
    expect(field(plural, 'spec.options.uninstall').default).toBeUndefined();
  });
});

/** Interfaces of types.ts with the names of their properties; inherited ones included. */
function interfaces(): Map<string, string[]> {
  const source = ts.createSourceFile('types.ts', read('types.ts'), ts.ScriptTarget.Latest);
  const found = new Map<string, string[]>();
  for (const statement of source.statements.filter(ts.isInterfaceDeclaration)) {
    const own = statement.members.map(({ name }) => (name && ts.isIdentifier(name) ? name.text : '?'));
    const bases = (statement.heritageClauses ?? []).flatMap(({ types }) => types.map((base) => base.expression));
    const inherited = bases.filter(ts.isIdentifier).flatMap((base) => found.get(base.text) ?? []);
    found.set(statement.name.text, [...own, ...inherited].sort());
  }
  return found;
}

describe('the types', () => {
  const declared = interfaces();

  it.each([
    ['HelmChartProxySpec', 'helmchartproxies', 'spec'],
    ['HelmChartProxyStatus', 'helmchartproxies', 'status'],
    ['HelmReleaseProxySpec', 'helmreleaseproxies', 'spec'],
    ['HelmReleaseProxyStatus', 'helmreleaseproxies', 'status'],
    ['ReleaseOperation', 'helmreleaseproxies', 'status.operation'],
    ['ObjectReference', 'helmreleaseproxies', 'spec.clusterRef'],
    ['LabelSelector', 'helmchartproxies', 'spec.clusterSelector'],
    ['HelmOptionsSpec', 'helmchartproxies', 'spec.options'],
    ['CredentialsSpec', 'helmchartproxies', 'spec.credentials'],
    ['SecretReference', 'helmchartproxies', 'spec.credentials.secret'],
    ['TlsConfigSpec', 'helmchartproxies', 'spec.tlsConfig'],
    ['DriftDetectionSpec', 'helmchartproxies', 'spec.driftDetection'],
    ['DriftRule', 'helmchartproxies', 'spec.driftDetection.ignore[]'],
    ['DriftRuleTarget', 'helmchartproxies', 'spec.driftDetection.ignore[].target'],
    ['DriftStatus', 'helmreleaseproxies', 'status.drift'],
    ['DriftObjectStatus', 'helmreleaseproxies', 'status.drift.details[]'],
    ['DriftFieldStatus', 'helmreleaseproxies', 'status.drift.details[].fields[]'],
  ])('%s has the fields of %s %s: others would be lost on the way to the server', (name, plural, path) => {
    expect(declared.get(name)).toEqual(Object.keys(field(plural, path).properties ?? {}).sort());
  });
});

describe('the two CRDs', () => {
  it.each(['version', 'reconcileStrategy', 'options', 'credentials', 'tlsConfig', 'driftDetection'])(
    'agree on spec.%s',
    (name) => {
      const [ours, theirs] = KINDS.map(({ plural }) => field(plural, `spec.${name}`));
      expect(ours?.type).toBeDefined();
      expect(ours).toEqual(theirs);
    },
  );

  it('have the same rules in ignore and in quantities', () => {
    const rules = field('helmchartproxies', 'spec.driftDetection.ignore');
    expect(rules.items?.properties).toBeDefined();
    expect(rules.items).toEqual(field('helmchartproxies', 'spec.driftDetection.quantities').items);
  });

  it('agree on what a condition and a reference look like', () => {
    const [hcp, hrp] = KINDS.map(({ plural }) => field(plural, 'status.conditions').items);
    expect(hcp?.required).toHaveLength(5);
    expect(hcp).toEqual(hrp);
    expect(field('helmchartproxies', 'status.matchingClusters').items?.properties).toEqual(
      field('helmreleaseproxies', 'spec.clusterRef').properties,
    );
  });
});
