import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TestCluster } from '../support/index.ts';
import { CertificateAuthority } from '../support/certs.ts';

interface Review {
  readonly request: { readonly uid: string; readonly dryRun?: boolean };
}

/** What it makes of every Deployment: the image by its digest, and an annotation. */
const PATCH = [
  {
    op: 'replace',
    path: '/spec/template/spec/containers/0/image',
    value: `registry.test/app@sha256:${'0'.repeat(64)}`,
  },
  { op: 'add', path: '/spec/template/metadata/annotations', value: { 'capstan.test/hooked': 'yes' } },
];

/**
 * Webhooks of v1 have to declare themselves free of side effects; the server itself refuses dry runs only for those that an
 * older one stored, by the same 400.
 */
const REFUSES_DRY_RUNS = '/refuses-dry-runs';

function answerTo({ request }: Review, refusesDryRuns: boolean): object {
  if (refusesDryRuns && request.dryRun === true) {
    const status = { code: 400, message: 'admission webhook "hook.capstan.test" does not support dry run' };
    return { uid: request.uid, allowed: false, status };
  }
  const patch = Buffer.from(JSON.stringify(PATCH)).toString('base64');
  return { uid: request.uid, allowed: true, patchType: 'JSONPatch', patch };
}

/** An admission webhook on loopback that changes Deployments. */
export class MutatingWebhook {
  readonly #server: Server;
  readonly #ca: CertificateAuthority;

  private constructor(server: Server, ca: CertificateAuthority) {
    this.#server = server;
    this.#ca = ca;
  }

  static async start(): Promise<MutatingWebhook> {
    const ca = await CertificateAuthority.create('webhook');
    const { certificate, key } = await ca.issue({ commonName: 'webhook', usage: 'server' });
    const server = createServer({ cert: certificate, key }, (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const review = JSON.parse(Buffer.concat(chunks).toString()) as Review;
        const answer = answerTo(review, request.url?.startsWith(REFUSES_DRY_RUNS) === true);
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: answer }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new MutatingWebhook(server, ca);
  }

  /** For the namespace whose label `hooked` is the name. */
  async register(cluster: TestCluster, options: { name: string; dryRuns: boolean }): Promise<void> {
    const { port } = this.#server.address() as AddressInfo;
    await cluster.api.create('/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations', {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: options.name },
      webhooks: [
        {
          name: 'hook.capstan.test',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          failurePolicy: 'Fail',
          reinvocationPolicy: 'Never',
          namespaceSelector: { matchLabels: { hooked: options.name } },
          rules: [
            { apiGroups: ['apps'], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['deployments'] },
          ],
          clientConfig: {
            url: `https://127.0.0.1:${String(port)}${options.dryRuns ? '/' : REFUSES_DRY_RUNS}`,
            caBundle: Buffer.from(this.#ca.certificate).toString('base64'),
          },
        },
      ],
    });
    // API servers learn of webhooks by a watch of their own.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
  }

  async unregister(cluster: TestCluster, name: string): Promise<void> {
    await cluster.kubectl(['delete', 'mutatingwebhookconfiguration', name]);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
  }
}
