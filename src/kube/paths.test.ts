import { expect, it } from 'vitest';
import { collectionPath, objectPath, pathTemplate, withQuery } from './paths.ts';

const PODS = { group: '', version: 'v1', plural: 'pods', namespaced: true };
const NODES = { group: '', version: 'v1', plural: 'nodes', namespaced: false };
const JOBS = { group: 'batch', version: 'v1', plural: 'jobs', namespaced: true };

it('makes the paths of the API', () => {
  expect(collectionPath(PODS, undefined)).toBe('/api/v1/pods');
  expect(collectionPath(JOBS, 'a')).toBe('/apis/batch/v1/namespaces/a/jobs');
  expect(collectionPath(NODES, 'ignored')).toBe('/api/v1/nodes');
  expect(objectPath(JOBS, { namespace: 'a', name: 'b' }, 'status')).toBe('/apis/batch/v1/namespaces/a/jobs/b/status');
});

it('lets no name out of its segment', () => {
  expect(objectPath(PODS, { namespace: 'a', name: '../secrets/x?y' })).toBe(
    '/api/v1/namespaces/a/pods/..%2Fsecrets%2Fx%3Fy',
  );
});

it('refuses a namespaced object without namespace, and one without name', () => {
  expect(() => objectPath(PODS, { name: 'x' })).toThrow('a namespace is needed');
  expect(() => objectPath(NODES, { name: '' })).toThrow('a name is needed');
});

it('appends a query and leaves out what is undefined', () => {
  expect(withQuery('/x', { a: 1, b: undefined, c: 'd e', f: true })).toBe('/x?a=1&c=d+e&f=true');
  expect(withQuery('/x', { a: undefined })).toBe('/x');
});

it.each([
  ['/api/v1/pods', '/api/v1/pods'],
  ['/api/v1/namespaces/kube-system', '/api/v1/namespaces/{name}'],
  ['/api/v1/namespaces/kube-system/pods', '/api/v1/namespaces/{namespace}/pods'],
  ['/apis/batch/v1/namespaces/a/jobs/b/status', '/apis/batch/v1/namespaces/{namespace}/jobs/{name}/status'],
  ['/apis/batch/v1', '/apis/batch/v1'],
  ['/readyz?verbose', '/readyz'],
])('%s is %s in a span', (path, template) => {
  expect(pathTemplate(path)).toBe(template);
});
