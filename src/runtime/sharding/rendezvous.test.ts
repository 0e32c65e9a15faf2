import { describe, expect, it } from 'vitest';
import { Ranking } from './rendezvous.ts';

const NAMES = Array.from({ length: 3_000 }, (_, i) => `fleet/cluster-${i}`);

function shares(ranking: Ranking): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of NAMES) {
    const owner = ranking.owner(name) ?? 'nobody';
    counts[owner] = (counts[owner] ?? 0) + 1;
  }
  return counts;
}

function even(...identities: string[]): Ranking {
  return new Ranking(identities.map((identity) => [identity, 1]));
}

describe('who owns a cluster', () => {
  it('is the same for every member, in whatever order it learned of the others', () => {
    const [here, there] = [even('a', 'b', 'c'), even('c', 'a', 'b')];
    expect(here.text).toBe(there.text);
    for (const name of NAMES) expect(here.owner(name)).toBe(there.owner(name));
  });

  it('is about an equal share for each of three', () => {
    const counts = shares(even('a', 'b', 'c'));
    for (const identity of ['a', 'b', 'c']) {
      expect(counts[identity]).toBeGreaterThan(900);
      expect(counts[identity]).toBeLessThan(1_100);
    }
  });

  it('follows the weights: 3 to 1, and nothing for 0', () => {
    const counts = shares(
      new Ranking([
        ['big', 3],
        ['small', 1],
        ['none', 0],
      ]),
    );
    expect(counts['none']).toBeUndefined();
    expect(counts['big']).toBeGreaterThan(2_150);
    expect(counts['big']).toBeLessThan(2_350);
  });

  it('changes for about a quarter when a fourth comes, and only to the fourth', () => {
    const [three, four] = [even('a', 'b', 'c'), even('a', 'b', 'c', 'd')];
    const moved = NAMES.filter((name) => three.owner(name) !== four.owner(name));
    expect(moved.every((name) => four.owner(name) === 'd')).toBe(true);
    expect(moved.length).toBeGreaterThan(650);
    expect(moved.length).toBeLessThan(850);
  });

  it('changes only for what the one that goes had', () => {
    const [three, two] = [even('a', 'b', 'c'), even('a', 'b')];
    for (const name of NAMES) if (three.owner(name) !== 'c') expect(two.owner(name)).toBe(three.owner(name));
  });

  it('moves nothing between others when a weight changes', () => {
    const [before, after] = [
      even('a', 'b', 'c'),
      new Ranking([
        ['a', 1],
        ['b', 1],
        ['c', 2],
      ]),
    ];
    const moved = NAMES.filter((name) => before.owner(name) !== after.owner(name));
    expect(moved.length).toBeGreaterThan(0);
    expect(moved.every((name) => after.owner(name) === 'c')).toBe(true);
  });

  it('is nobody without members, or when all weights are 0', () => {
    expect(Ranking.EMPTY.owner('x')).toBeUndefined();
    expect(new Ranking([['a', 0]]).owner('x')).toBeUndefined();
  });
});

describe('a published view', () => {
  it('is read as it was written', () => {
    const ranking = new Ranking([
      ['a_1', 1.5],
      ['b', 0],
    ]);
    expect(Ranking.parse(ranking.text)?.members).toEqual(ranking.members);
  });

  it.each(['', 'x', 'null', '[]', '1', '{"a":"1"}', '{"a":-1}', '{"a":null}'])('is refused when it is %j', (text) => {
    expect(Ranking.parse(text)).toBeUndefined();
  });
});
