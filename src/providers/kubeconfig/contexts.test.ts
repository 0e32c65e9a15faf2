import { describe, expect, it } from 'vitest';
import { LABELS_EXTENSION, readContexts } from './contexts.ts';

const FILE = `
apiVersion: v1
kind: Config
current-context: a
contexts:
  - name: a
    context:
      cluster: one
      user: admin
      extensions:
        - name: ${LABELS_EXTENSION}
          extension: { tier: edge, replicas: 3 }
        - name: minikube
          extension: { tier: not ours }
  - name: b
    context: { cluster: two, user: robot, namespace: apps }
  - name: a
    context: { cluster: two, user: robot }
  - name: 7
    context: { cluster: two, user: robot }
clusters:
  - name: one
    cluster: { server: https://one.example, certificate-authority: pki/ca.crt }
  - name: two
    cluster: { server: https://two.example, certificate-authority: /etc/pki/two.crt }
users:
  - name: admin
    user: { client-certificate: admin.crt, client-key: ../admin.key }
  - name: robot
    user: { tokenFile: token, exec: { command: ./bin/login, apiVersion: client.authentication.k8s.io/v1 } }
`;

function specs(text: string): Record<string, Record<string, unknown>> {
  return Object.fromEntries(
    readContexts(text, '/etc/kube').map(({ name, spec }) => [
      name,
      JSON.parse(spec.kubeconfig) as Record<string, unknown>,
    ]),
  );
}

describe('the contexts of a kubeconfig file', () => {
  it('come each with its own cluster and user alone, the first of a name', () => {
    const found = specs(FILE);
    expect(Object.keys(found)).toEqual(['a', 'b']);
    expect(found['b']).toMatchObject({
      'current-context': 'b',
      contexts: [{ name: 'b', context: { cluster: 'two', user: 'robot', namespace: 'apps' } }],
      clusters: [{ name: 'two' }],
      users: [{ name: 'robot' }],
    });
    expect(found['b']?.['clusters']).toHaveLength(1);
    expect(found['a']).toMatchObject({ contexts: [{ context: { cluster: 'one' } }], users: [{ name: 'admin' }] });
  });

  it('name files from where the kubeconfig lies', () => {
    const found = specs(FILE);
    expect(found['a']).toMatchObject({
      clusters: [{ cluster: { 'certificate-authority': '/etc/kube/pki/ca.crt' } }],
      users: [{ user: { 'client-certificate': '/etc/kube/admin.crt', 'client-key': '/etc/admin.key' } }],
    });
    expect(found['b']).toMatchObject({
      clusters: [{ cluster: { 'certificate-authority': '/etc/pki/two.crt' } }],
      users: [{ user: { tokenFile: '/etc/kube/token', exec: { command: '/etc/kube/bin/login' } } }],
    });
    expect(specs(FILE.replace('./bin/login', 'aws'))['b']).toMatchObject({
      users: [{ user: { exec: { command: 'aws' } } }],
    });
  });

  it('carry labels in an extension, which is no part of the connection', () => {
    const [a, b] = readContexts(FILE, '/');
    expect(a?.labels).toEqual({ tier: 'edge' });
    expect(b?.labels).toEqual({});
    expect(readContexts(FILE.replace('tier: edge', 'tier: core'), '/')[0]?.spec).toEqual(a?.spec);
  });

  it('do not change with another context', () => {
    const before = specs(FILE);
    const after = specs(FILE.replace('two.example', 'three.example'));
    expect(after['a']).toEqual(before['a']);
    expect(after['b']).not.toEqual(before['b']);
  });

  it('are none in a kubeconfig that has none', () => {
    expect(readContexts('kind: Config\ncontexts: null\n', '/')).toEqual([]);
  });

  it('that lack their cluster or user are for the connection to refuse', () => {
    expect(specs(FILE.replace('- name: one', '- name: other'))['a']).toMatchObject({ clusters: [] });
  });

  it.each([
    ['', 'it is empty'],
    ['hush: [', 'it is no valid YAML'],
    ['- hush', 'it is no YAML mapping'],
    ['hush: secret', 'it is no kubeconfig: it has no contexts'],
  ])('cannot be had from %j', (text, message) => {
    expect(() => readContexts(text, '/')).toThrow(message);
    expect(() => readContexts(text, '/')).not.toThrow('hush');
  });
});
