/**
 * False positives and loops of drift detection that people reported to others (scenarios 11 to 19): what a webhook or a
 * template's chance makes of a chart is left alone, and what cannot be applied as usual is put back or told.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet, KubeObject } from '../support/index.ts';
import { configMap, deployment, widgetCrd } from './drift-manifests.ts';
import { CANARY, Drifting, startDriftFleet } from './drifting.ts';
import { HELM_VERSIONS } from './helm-versions.ts';
import { MutatingWebhook } from './mutating-webhook.ts';

const GROUP = 'scenarios-2.test';
const SERVICE = `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: NodePort, selector: { app: web }, ports: [{ name: http, port: 80, targetPort: http }] }
`;
const CHANCE = `apiVersion: v1
kind: ConfigMap
metadata: { name: chance }
data: { word: {{ randAlphaNum 12 | quote }}, revision: {{ .Release.Revision | quote }} }
`;
const WIDGET = `apiVersion: ${GROUP}/v1
kind: Widget
metadata: { name: one }
spec: { size: 4, unknown: dropped, items: [{ name: a, value: "1" }] }
`;
const DATABASE = `apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db }
spec:
  serviceName: db
  replicas: 0
  selector: { matchLabels: { app: db } }
  template: { metadata: { labels: { app: db } }, spec: { containers: [{ name: db, image: db }] } }
  volumeClaimTemplates:
    - metadata: { name: data }
      spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
`;

describe.each(HELM_VERSIONS)('on $name', ({ binary }) => {
  let fleet: Fleet;
  let drifting: Drifting;
  let webhook: MutatingWebhook;

  beforeAll(async () => {
    webhook = await MutatingWebhook.start();
    fleet = await startDriftFleet({ helm: binary, flags: ['--drift-retry-delays=0s,0s,0s,0s'] });
    drifting = new Drifting(fleet);
    await drifting.cluster.kubectl(['apply', '-f', '-'], { stdin: widgetCrd(GROUP) });
    await drifting.cluster.kubectl(['wait', '--for=condition=Established', `crd/widgets.${GROUP}`]);
  });

  afterAll(async () => {
    await fleet.stop();
    await webhook.stop();
  });

  async function install(name: string, templates: Record<string, string>, driftDetection?: object): Promise<void> {
    await drifting.install(name, { ...templates, 'canary.yaml': CANARY }, driftDetection && { driftDetection });
    expect(await drifting.corrections(name)).toBe(0);
  }

  function web(namespace: string): string {
    return `/apis/apps/v1/namespaces/${namespace}/deployments/web`;
  }

  it.each([true, false])('11: what a webhook changes is no drift (it takes dry runs: %s)', async (dryRuns) => {
    const name = `hooked-${String(dryRuns)}`;
    const { cluster } = drifting;
    const metadata = { name, labels: { hooked: name } };
    await cluster.api.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata });
    await webhook.register(cluster, { name, dryRuns });
    await install(name, { 'web.yaml': deployment('web', { spec: 'replicas: 1' }) });
    await cluster.kubectl(['scale', 'deployment/web', '-n', name, '--replicas=3']);
    await drifting.corrected(name);
    const live = await drifting.until(web(name), (object) => {
      expect(object).toMatchObject({ spec: { replicas: 1 } });
    });
    expect(JSON.stringify(live)).toContain('registry.test/app@sha256');
    await drifting.nothingElseCorrected(name);
    await webhook.unregister(cluster, name);
  });

  it('12: what a template makes by chance is put back as it was recorded, and costs no revision', async () => {
    await install('chance', { 'chance.yaml': CHANCE });
    const path = '/api/v1/namespaces/chance/configmaps/chance';
    const { data } = await drifting.cluster.api.get<KubeObject & { data: object }>(path);
    await drifting.cluster.api.patch(path, { data: { word: 'other' } });
    await drifting.corrected('chance');
    await drifting.until(path, (object) => {
      expect(object['data']).toEqual(data);
    });
    await drifting.nothingElseCorrected('chance');
    expect(await drifting.revision('chance')).toBe(1);
  });

  it('14: a port and a variable added by hand go, and what the server allotted stays', async () => {
    const templates = { 'web.yaml': deployment('web'), 'service.yaml': SERVICE };
    await install('added', templates, { mode: 'Correct', extraFields: 'Remove' });
    const path = '/api/v1/namespaces/added/services/web';
    const before = await drifting.cluster.api.get(path);
    const port = { name: 'x', port: 99 };
    await drifting.cluster.api.jsonPatch(path, [{ op: 'add', path: '/spec/ports/-', value: port }]);
    await drifting.cluster.kubectl(['set', 'env', 'deployment/web', '-n', 'added', 'EXTRA=yes']);
    await drifting.corrected('added', 2);
    await drifting.until(path, (object) => {
      expect(object['spec']).toEqual(before['spec']);
    });
    expect(JSON.stringify((await drifting.cluster.api.get(web('added')))['spec'])).not.toContain('EXTRA');
  });

  it('15: what was corrected by the other way of applying loses no field afterwards', async () => {
    const templates = { 'settings.yaml': configMap('settings', { a: '1', b: '1' }) };
    await install('both', templates, { mode: 'Correct', extraFields: 'Remove' });
    const path = '/api/v1/namespaces/both/configmaps/settings';
    for (const [index, key] of ['a', 'b'].entries()) {
      await drifting.cluster.api.patch(path, { data: { [key]: 'x', added: 'x' } });
      await drifting.corrected('both', index + 1);
      await drifting.until(path, (object) => {
        expect(object['data']).toEqual({ a: '1', b: '1' });
      });
    }
  });

  it('16: a strategy that validation refuses together with the live one is put back', async () => {
    await install('together', { 'web.yaml': deployment('web', { spec: 'strategy: { type: Recreate }' }) });
    const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 3 } };
    await drifting.cluster.api.patch(web('together'), { spec: { strategy } });
    await drifting.corrected('together');
    const live = await drifting.cluster.api.get<KubeObject & { spec: { strategy: object } }>(web('together'));
    expect(live.spec.strategy).toEqual({ type: 'Recreate' });
  });

  it('17: a custom resource is put back by what is live, lists as wholes', async () => {
    await install('custom', { 'widget.yaml': WIDGET.replace(' unknown: dropped,', '') });
    const path = `/apis/${GROUP}/v1/namespaces/custom/widgets/one`;
    await drifting.cluster.api.patch(path, { spec: { size: 5, items: [] } });
    await drifting.corrected('custom');
    expect((await drifting.cluster.api.get(path))['spec']).toEqual({ size: 4, items: [{ name: 'a', value: '1' }] });
    await drifting.nothingElseCorrected('custom');
  });

  it('19: what the server adds to volume claim templates is no drift', async () => {
    await install('claims', { 'db.yaml': DATABASE });
    const path = '/apis/apps/v1/namespaces/claims/statefulsets/db';
    await drifting.cluster.api.patch(path, { spec: { replicas: 1 } });
    await drifting.corrected('claims');
    expect(await drifting.cluster.api.get(path)).toMatchObject({ spec: { replicas: 0 } });
    await drifting.nothingElseCorrected('claims');
  });
});
