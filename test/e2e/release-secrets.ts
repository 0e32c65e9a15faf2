import { gunzipSync, gzipSync } from 'node:zlib';
import type { KubeObject, TestCluster } from '../support/index.ts';

/** What tests read of a Helm record (helm.sh, "Release" in storage: base64 of gzip of JSON). */
export interface HelmRecord {
  name: string;
  version: number;
  config?: Record<string, unknown>;
  info: { status: string; description?: string; notes?: string };
  chart: { metadata: { name: string; version: string } };
}

const SELECTOR = 'labelSelector=owner%3Dhelm';

/** The newest record of a release, decoded. Rejects when there is none. */
export async function newestRecord(cluster: TestCluster, namespace: string, name: string): Promise<HelmRecord> {
  const secret = await newestSecret(cluster, namespace, name);
  return decode(secret);
}

/** Rewrites the newest record's status, label included, as CAAPH's own tests do to feign an interrupted operation. */
export async function forceStatus(
  cluster: TestCluster,
  release: { namespace: string; name: string },
  status: string,
): Promise<void> {
  const secret = await newestSecret(cluster, release.namespace, release.name);
  const record = decode(secret);
  record.info.status = status;
  const data = { release: encode(record) };
  await cluster.api.patch(`/api/v1/namespaces/${release.namespace}/secrets/${secret.metadata.name ?? ''}`, {
    metadata: { labels: { status } },
    data,
  });
}

/** Adds records up to that revision, all like the newest, as that many upgrades without a change would have. */
export async function feignUpgrades(
  cluster: TestCluster,
  release: { namespace: string; name: string },
  upTo: number,
): Promise<void> {
  const secret = await newestSecret(cluster, release.namespace, release.name);
  const record = decode(secret);
  for (let version = record.version + 1; version <= upTo; version++) {
    const status = version === upTo ? 'deployed' : 'superseded';
    await cluster.api.create(`/api/v1/namespaces/${release.namespace}/secrets`, {
      type: secret['type'],
      metadata: {
        name: `sh.helm.release.v1.${release.name}.v${version}`,
        labels: { ...secret.metadata.labels, version: String(version), status },
      },
      data: { release: encode({ ...record, version, info: { ...record.info, status } }) },
    });
  }
}

async function newestSecret(cluster: TestCluster, namespace: string, name: string): Promise<KubeObject> {
  const all = await cluster.api.list(`/api/v1/namespaces/${namespace}/secrets?${SELECTOR}`);
  const own = all.filter((secret) => secret.metadata.labels?.['name'] === name);
  own.sort((a, b) => Number(b.metadata.labels?.['version']) - Number(a.metadata.labels?.['version']));
  const [newest] = own;
  if (!newest) throw new Error(`there is no release ${namespace}/${name}`);
  return newest;
}

function decode(secret: KubeObject): HelmRecord {
  const { release } = secret['data'] as { release: string };
  const inner = Buffer.from(release, 'base64').toString('utf8');
  return JSON.parse(gunzipSync(Buffer.from(inner, 'base64')).toString('utf8')) as HelmRecord;
}

function encode(record: HelmRecord): string {
  return Buffer.from(gzipSync(JSON.stringify(record)).toString('base64')).toString('base64');
}
