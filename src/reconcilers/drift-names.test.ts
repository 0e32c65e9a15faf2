import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { DRIFT_DETECTION_ANNOTATION } from '../api/index.ts';
import type { DriftDetectionSpec } from '../api/index.ts';
import { compileRules } from '../drift/rules.ts';
import { OPT_OUT_ANNOTATION } from '../drift/set-apart.ts';

// The room drift knows no API of ours, so the name stands in both.
it('the annotation that takes an object out has one name, in the API and in the room drift', () => {
  expect(OPT_OUT_ANNOTATION).toBe(DRIFT_DETECTION_ANNOTATION);
});

describe('the examples of docs/drift.md', () => {
  const page = readFileSync(new URL('../../docs/drift.md', import.meta.url), 'utf8');
  const examples = [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)]
    .map(([, text]) => parse(text ?? '') as { driftDetection?: DriftDetectionSpec })
    .flatMap(({ driftDetection }) => (driftDetection === undefined ? [] : [driftDetection]));

  it('have rules', () => {
    expect(examples.filter(({ ignore }) => ignore !== undefined).length).toBeGreaterThan(2);
    expect(examples.filter(({ quantities }) => quantities !== undefined)).toHaveLength(1);
  });

  it.each(examples.map((example) => [JSON.stringify(example), example] as const))('%s compiles', (_text, example) => {
    expect(compileRules(example.ignore ?? [], 'ignore').problems).toEqual([]);
    expect(compileRules(example.quantities ?? [], 'quantities').problems).toEqual([]);
  });
});
