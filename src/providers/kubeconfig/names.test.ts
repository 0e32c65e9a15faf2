import { expect, it } from 'vitest';
import { contextClusterName, fileClusterName, labelValue, stemOf } from './names.ts';

it.each([
  ['/etc/kube/prod.yaml', 'admin@prod', 'prod+admin@prod'],
  ['/root/.kube/config', 'arn:aws:eks:eu-west-1:1:cluster/prod', 'config+arn:aws:eks:eu-west-1:1:cluster%2Fprod'],
  ['a.b.kubeconfig', 'x y#z', 'a.b+x%20y%23z'],
  ['über.yml', 'a+b%2F', '%C3%BCber+a%2Bb%252F'],
  ['v1.2', '\u{d800}', 'v1.2+%EF%BF%BD'],
])('a context of %s called %j is %s', (file, context, name) => {
  expect(contextClusterName(file, context)).toBe(name);
});

it('a name that is too long is refused, and one that only stands for a file is cut', () => {
  expect(() => contextClusterName('a', 'x'.repeat(600))).toThrow('longer than 600');
  expect(fileClusterName(`${'ü'.repeat(120)}.yaml`)).toHaveLength(253);
});

it('the name of a file is that without the extension of a kubeconfig', () => {
  expect(['a.yaml', 'a.yml', 'a.json', 'a.conf', 'a.kubeconfig', 'a'].map(stemOf)).toEqual(Array(6).fill('a'));
  expect(stemOf('a.txt')).toBe('a.txt');
});

it('label values are what the API takes', () => {
  expect(labelValue('admin@prod')).toBe('admin-prod');
  expect(labelValue('//x//')).toBe('x');
  expect(labelValue('x'.repeat(80))).toHaveLength(63);
  expect(labelValue('###')).toBe('');
});
