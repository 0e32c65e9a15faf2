import { describe, expect, it } from 'vitest';
import { compileRules } from './rules.ts';
import type { InventoryObject, JsonObject, ObjectId, RuleTarget } from './types.ts';

const ID: ObjectId = { group: 'apps', version: 'v1', kind: 'Deployment', namespace: 'web', name: 'shop-api' };
const WANTED: JsonObject = { metadata: { labels: { app: 'shop' }, annotations: { team: 'blue' } } };

function matches(target: RuleTarget, live?: JsonObject): boolean {
  const rules = compileRules([{ paths: ['/spec/replicas'], target }], 'ignore');
  expect(rules.problems).toEqual([]);
  return rules.patternsFor(ID, WANTED, live).length > 0;
}

describe('a rule', () => {
  it('is for every object without a target', () => {
    const rules = compileRules([{ paths: ['', '/spec/a~1b/*'] }], 'ignore');
    expect(rules.patternsFor(ID, WANTED, undefined)).toEqual([[], ['spec', 'a/b', '*']]);
  });

  it.each<[RuleTarget, boolean]>([
    [{ kind: 'Deployment' }, true],
    [{ kind: '(Stateful|Daemon)Set' }, false],
    [{ kind: 'Deploy' }, false],
    [{ name: 'shop-.*', namespace: 'web' }, true],
    [{ name: 'shop-.*', namespace: 'dev' }, false],
    [{ group: 'apps', version: 'v1' }, true],
    [{ labelSelector: 'app in (shop,till)' }, true],
    [{ labelSelector: 'app!=shop' }, false],
    [{ annotationSelector: 'team=blue' }, true],
  ])('with target %j matches: %s', (target, expected) => {
    expect(matches(target)).toBe(expected);
  });

  it('holds by the labels that the object should have as by those that it has', () => {
    expect(matches({ labelSelector: 'app=shop' }, { metadata: {} })).toBe(true);
    expect(matches({ labelSelector: 'extra=yes' }, { metadata: { labels: { extra: 'yes' } } })).toBe(true);
  });

  it('that is wrong is told by its field, and the others hold', () => {
    const rules = compileRules(
      [
        { paths: ['spec/replicas', '/a~2'] },
        { paths: ['/spec'], target: { kind: '(' } },
        { paths: ['/spec'], target: { labelSelector: '=,=' } },
        { paths: ['/good'] },
      ],
      'ignore',
    );
    expect(rules.problems.map((text) => text.split(':')[0])).toEqual([
      'ignore[0].paths[0]',
      'ignore[0].paths[1]',
      'ignore[1].target.kind',
      'ignore[2].target.labelSelector',
    ]);
    expect(rules.patternsFor(ID, WANTED, undefined)).toEqual([['good']]);
  });

  it('that matches nothing of the release is told', () => {
    const object: InventoryObject = {
      id: ID,
      resource: undefined,
      wanted: WANTED,
      nulls: [],
      order: 0,
      fromCrds: false,
    };
    const rules = compileRules([{ paths: ['/a'], target: { kind: 'Job' } }, { paths: ['/a'] }], 'ignore');
    expect(rules.unmatched([object])).toEqual(['ignore[0].target matches no object of the release']);
  });

  it('takes time that grows with the text and no faster, whatever the expression', () => {
    expect(matches({ name: '(a+)+b' })).toBe(false);
    const rules = compileRules([{ paths: ['/a'], target: { name: '(a*)*b' } }], 'ignore');
    // A backtracking engine needs longer than the universe for this.
    expect(rules.patternsFor({ ...ID, name: 'a'.repeat(60) }, WANTED, undefined)).toEqual([]);
  });
});
