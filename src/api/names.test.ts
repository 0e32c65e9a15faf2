import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as names from './names.ts';

const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');
const annotations = Object.entries(names).filter(([name]) => name.endsWith('_ANNOTATION'));

describe('docs/api.md', () => {
  it('is held against annotations at all', () => {
    expect(annotations.length).toBeGreaterThan(9);
  });

  it.each(annotations)('has %s (%s)', (_name, annotation) => {
    // Those of our own are written there without their long prefix, which the page gives once.
    const short = annotation.replace('helmreleaseproxy.addons.cluster.x-k8s.io/', '');
    expect(page).toMatch(new RegExp(`\`${short.replaceAll('.', '\\.')}(: [^\`]+)?\``));
  });
});
