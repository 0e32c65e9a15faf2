import { expect, it } from 'vitest';
import { DRIFT_DETECTION_ANNOTATION } from '../api/index.ts';
import { OPT_OUT_ANNOTATION } from '../drift/set-apart.ts';

// The room drift knows no API of ours, so the name stands in both.
it('the annotation that takes an object out has one name, in the API and in the room drift', () => {
  expect(OPT_OUT_ANNOTATION).toBe(DRIFT_DETECTION_ANNOTATION);
});
