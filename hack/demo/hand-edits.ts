import type { KubeObject } from '../../test/support/index.ts';
import { eventually } from '../../test/support/index.ts';
import { NAMESPACE } from './charts.ts';
import type { Member, Stage } from './stage.ts';

/** Most time (ms) for a change to be put back: a fraction of a second on an idle machine. */
const LIMIT_MS = 60_000;

interface Event extends KubeObject {
  reason?: string;
  message?: string;
  involvedObject?: { name?: string };
}

/** What a person does to a workload cluster behind Capstan's back, and what becomes of it. */
export class HandEdits {
  readonly #stage: Stage;
  readonly #member: Member;

  constructor(stage: Stage, member: Member) {
    this.#stage = stage;
    this.#member = member;
  }

  async deleteDeployment(): Promise<void> {
    await this.#kubectl('delete', 'deployment', 'greeting', '-n', 'greeting', '--wait=false');
  }

  async editPage(message: string): Promise<void> {
    await this.#patch('greeting', 'configmap', { data: { message } });
  }

  async editBaseline(memory: string): Promise<void> {
    await this.#patch('baseline', 'limitrange', { spec: { limits: [{ type: 'Container', default: { memory } }] } });
  }

  /** Waits until the Deployment is there again and the ConfigMap says again what the chart makes of it. */
  async putBack(salutation: string): Promise<void> {
    const { api } = this.#member.cluster;
    await eventually(
      async () => {
        const page = await api.get<KubeObject & { data?: Record<string, string> }>(
          '/api/v1/namespaces/greeting/configmaps/greeting',
        );
        const message = page.data?.['message'] ?? '';
        if (!message.startsWith(salutation)) throw new Error(`the ConfigMap says "${message}"`);
        await api.get('/apis/apps/v1/namespaces/greeting/deployments/greeting');
      },
      { timeoutMs: LIMIT_MS, what: 'what was changed by hand is put back', signal: this.#stage.signal },
    );
  }

  /** What Capstan says of it: the Events on the management cluster, one text each. */
  async told(): Promise<string[]> {
    const { api } = this.#stage.environment.management;
    const release = await this.#release();
    return eventually(
      async () => {
        const events = await api.list<Event>(`/api/v1/namespaces/${NAMESPACE}/events`);
        const ours = events.filter(({ involvedObject }) => involvedObject?.name === release);
        const texts = ['DriftDetected', 'DriftCorrected'].flatMap((reason) =>
          ours.filter((event) => event.reason === reason).map(({ message }) => `${reason}: ${message ?? ''}`),
        );
        const all = texts.join('\n');
        for (const word of ['Deployment', 'ConfigMap', 'kubectl-patch', 'DriftCorrected'])
          if (!all.includes(word)) throw new Error(`no Event names ${word}: ${all}`);
        return texts;
      },
      { timeoutMs: LIMIT_MS, what: 'Events tell what was changed, and by whom', signal: this.#stage.signal },
    );
  }

  async #release(): Promise<string> {
    const found = this.#stage.releases
      .objects()
      .find(({ spec }) => spec.releaseName === 'greeting' && spec.clusterRef?.name === this.#member.name);
    return found?.metadata.name ?? '';
  }

  async #patch(release: string, kind: string, patch: object): Promise<void> {
    await this.#kubectl('patch', kind, release, '-n', release, '--type', 'merge', '-p', JSON.stringify(patch));
  }

  async #kubectl(...args: string[]): Promise<void> {
    await this.#stage.kubectl('--kubeconfig', this.#stage.folder.shown(`${this.#member.name}.kubeconfig`), ...args);
  }
}
