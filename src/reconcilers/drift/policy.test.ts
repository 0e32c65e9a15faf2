import { describe, expect, it } from 'vitest';
import { Policies, policyOf, unmatchedRules } from './policy.ts';

const DEFAULTS = { mode: 'Warn', helmManagers: ['helm', 'manager'] } as const;

describe('policyOf', () => {
  it('fills in what the spec does not say', () => {
    const policy = policyOf(undefined, DEFAULTS);
    expect(policy).toMatchObject({
      mode: 'Warn',
      correction: 'Apply',
      includeCRDs: false,
      hasRules: false,
      problems: [],
    });
    expect(policy.comparison.extraFields).toBe('Ignore');
    expect([...policy.comparison.helmManagers]).toEqual(['helm', 'manager']);
    expect(policy.mayCorrect).toBe(false);
  });

  it('takes what the spec says', () => {
    const spec = { mode: 'Correct', correction: 'Upgrade', extraFields: 'Remove', includeCRDs: true } as const;
    const policy = policyOf(spec, DEFAULTS);
    expect(policy).toMatchObject({ mode: 'Correct', correction: 'Upgrade', includeCRDs: true, mayCorrect: true });
    expect(policy.comparison.extraFields).toBe('Remove');
  });

  it('corrects nothing while an ignore rule cannot be read, which a bad quantity does not keep it from', () => {
    const bad = [{ paths: ['/spec'], target: { name: '(' } }];
    const held = policyOf({ mode: 'Correct', ignore: bad }, DEFAULTS);
    expect(held).toMatchObject({ hasRules: true, mayCorrect: false });
    expect(held.problems.join()).toContain('ignore[0].target.name');
    const free = policyOf({ mode: 'Correct', quantities: bad }, DEFAULTS);
    expect(free.mayCorrect).toBe(true);
    expect(free.problems.join()).toContain('quantities[0].target.name');
  });

  it('names rules of both kinds that match nothing', () => {
    const rule = [{ paths: ['/spec'], target: { kind: 'Secret' } }];
    const unmatched = unmatchedRules(policyOf({ ignore: rule, quantities: rule }, DEFAULTS), []);
    expect(unmatched).toHaveLength(2);
    expect(unmatchedRules(policyOf({}, DEFAULTS), [])).toEqual([]);
  });
});

describe('Policies', () => {
  it('are compiled once for equal specs', () => {
    const policies = new Policies(DEFAULTS);
    expect(policies.of({ mode: 'Correct' })).toBe(policies.of({ mode: 'Correct' }));
    expect(policies.of({ mode: 'Correct' })).not.toBe(policies.of({ mode: 'Warn' }));
    expect(policies.of(undefined)).toBe(policies.of({}));
  });

  it('say the mode without compiling anything', () => {
    const policies = new Policies(DEFAULTS);
    expect(policies.modeOf(undefined)).toBe('Warn');
    expect(policies.modeOf({ mode: 'Disabled' })).toBe('Disabled');
  });
});
