import { describe, expect, it } from 'vitest';
import { Store } from './store.ts';
import type { Change } from './store.ts';
import type { KubeObject } from './types.ts';

interface Thing extends KubeObject {
  colours?: string[];
}

function thing(name: string, uid = name, version = '1', colours: string[] = []): Thing {
  return { metadata: { name, namespace: 'a', uid, resourceVersion: version }, colours };
}

function told(changes: readonly Change<Thing>[]): string[] {
  return changes.map(({ type, object }) => `${type} ${object.metadata.name} ${object.metadata.uid ?? ''}`);
}

function incoming(...things: Thing[]): Map<string, Thing> {
  return new Map(things.map((object) => [`a/${object.metadata.name}`, object]));
}

describe('a store', () => {
  it('keeps namespaces apart, and objects without one', () => {
    const store = new Store<Thing>();
    store.put(thing('x'));
    store.put({ metadata: { name: 'x', namespace: 'b' } });
    store.put({ metadata: { name: 'x' } });
    expect(store.size).toBe(3);
    expect(store.list('b')).toEqual([{ metadata: { name: 'x', namespace: 'b' } }]);
    expect(store.get(undefined, 'x')).toEqual({ metadata: { name: 'x' } });
    expect(store.get('c', 'x')).toBeUndefined();
  });

  it('takes an object with another uid for another object', () => {
    const store = new Store<Thing>();
    expect(told(store.put(thing('x', 'first')))).toEqual(['add x first']);
    expect(told(store.put(thing('x', 'first', '2')))).toEqual(['update x first']);
    expect(told(store.put(thing('x', 'second')))).toEqual(['delete x first', 'add x second']);
  });

  it('removes by identity', () => {
    const store = new Store<Thing>();
    store.put(thing('x', 'second'));
    expect(store.remove(thing('x', 'first'))).toEqual([]);
    expect(store.size).toBe(1);
    expect(told(store.remove(thing('x', 'second', '9')))).toEqual(['delete x second']);
    expect(store.remove(thing('x', 'second', '9'))).toEqual([]);
  });

  it('tells what is new, other, recreated and gone when it is replaced, and keeps what is the same', () => {
    const store = new Store<Thing>();
    const same = thing('same');
    for (const object of [same, thing('changed'), thing('recreated', 'first'), thing('gone')]) store.put(object);
    const next = incoming(thing('same'), thing('changed', 'changed', '2'), thing('recreated', 'second'), thing('new'));
    expect(told(store.replace(next))).toEqual([
      'delete gone gone',
      'update changed changed',
      'delete recreated first',
      'add recreated second',
      'add new new',
    ]);
    expect(store.get('a', 'same')).toBe(same);
  });
});

describe('an index', () => {
  const byColour = (object: Thing): readonly string[] => object.colours ?? [];
  const names = (store: Store<Thing>, colour: string): string[] =>
    store.byIndex('colour', colour).map(({ metadata }) => metadata.name);

  it('covers what was stored before it, and follows changes', () => {
    const store = new Store<Thing>();
    store.put(thing('x', 'x', '1', ['red', 'blue']));
    store.addIndex('colour', byColour);
    store.put(thing('y', 'y', '1', ['red']));
    expect(names(store, 'red')).toEqual(['x', 'y']);
    store.put(thing('x', 'x', '2', ['green']));
    expect([names(store, 'red'), names(store, 'blue'), names(store, 'green')]).toEqual([['y'], [], ['x']]);
    store.remove(thing('y'));
    expect(names(store, 'red')).toEqual([]);
    store.replace(incoming(thing('z', 'z', '1', ['green'])));
    expect(names(store, 'green')).toEqual(['z']);
  });

  it('must be known', () => {
    expect(() => new Store<Thing>().byIndex('colour', 'red')).toThrow('there is no index "colour"');
  });
});
