import { describe, expect, it } from 'vitest';
import type { HelmChartProxy } from '../api/index.ts';
import { chartProxy } from './chart-proxy/objects.test-support.ts';
import { FakeServer } from './fakes.test-support.ts';
import { setCondition } from './conditions.ts';
import { HCP } from './resources.ts';
import { StatusWriter } from './status-writer.ts';

const options = { signal: new AbortController().signal };

function setup(): { server: FakeServer; writer: StatusWriter<HelmChartProxy>; object: HelmChartProxy } {
  const server = new FakeServer();
  const object = server.put(HCP, chartProxy());
  return { server, writer: new StatusWriter<HelmChartProxy>(server.client, HCP), object };
}

function condition(object: HelmChartProxy, type: string): HelmChartProxy {
  const input = { type, status: 'True', reason: 'R', message: '' } as const;
  return { ...object, status: { ...object.status, conditions: setCondition(object.status?.conditions, input, 1) } };
}

describe('StatusWriter', () => {
  it('writes nothing when nothing changed', async () => {
    const { server, writer, object } = setup();
    const first = await writer.update(object, (current) => current, options);
    expect(server.writes.map(({ what }) => what)).toEqual(['helmchartproxies/hcp/status']);
    const second = await writer.update(first!, (current) => current, options);
    expect(second).toBe(first);
    expect(server.writes).toHaveLength(1);
  });

  it('writes metadata and status apart, each once, and observedGeneration with the status', async () => {
    const { server, writer, object } = setup();
    const after = await writer.update(
      object,
      (current) => condition({ ...current, metadata: { ...current.metadata, finalizers: ['a', 'b'] } }, 'X'),
      options,
    );
    expect(server.writes.map(({ what }) => what)).toEqual(['helmchartproxies/hcp', 'helmchartproxies/hcp/status']);
    expect(after?.metadata.finalizers).toEqual(['a', 'b']);
    expect(after?.status).toMatchObject({ observedGeneration: 1, conditions: [{ type: 'X' }] });
  });

  it('observes the generation that its own change of the spec made', async () => {
    const { writer, object } = setup();
    const after = await writer.update(
      object,
      (current) => ({ ...current, spec: { ...current.spec, version: '2' } }),
      options,
    );
    expect(after?.metadata.generation).toBe(2);
    expect(after?.status?.observedGeneration).toBe(2);
  });

  it('leaves observedGeneration alone when told to', async () => {
    const { server, writer, object } = setup();
    await writer.update(object, (current) => current, { ...options, observe: false });
    expect(server.writes).toEqual([]);
  });

  it('reads again on a conflict and keeps what others wrote', async () => {
    const { server, writer, object } = setup();
    server.edit<HelmChartProxy>(HCP, { namespace: 'fleet', name: 'hcp' }, (other) => {
      other.metadata.labels = { other: 'yes' };
      Object.assign(other, condition(other, 'Other'));
    });
    const after = await writer.update(
      object,
      (current) => condition({ ...current, metadata: { ...current.metadata, annotations: { mine: 'yes' } } }, 'Mine'),
      options,
    );
    expect(after?.metadata).toMatchObject({ labels: { other: 'yes' }, annotations: { mine: 'yes' } });
    expect(after?.status?.conditions?.map(({ type }) => type)).toEqual(['Mine', 'Other']);
  });

  it('takes away annotations and the last finalizer', async () => {
    const { server, writer } = setup();
    const given = server.put(
      HCP,
      chartProxy({}, { finalizers: ['f'], annotations: { a: '1' }, deletionTimestamp: '2026-01-01T00:00:00Z' }),
    );
    await writer.update(
      given,
      (current) => condition({ ...current, metadata: { ...current.metadata, finalizers: [], annotations: {} } }, 'X'),
      options,
    );
    expect(server.peek(HCP, 'fleet', 'hcp')).toBeUndefined();
    expect(server.writes.map(({ what }) => what)).toEqual(['helmchartproxies/hcp']);
  });

  it('is undefined when the object is gone, or another has its name', async () => {
    const { server, writer, object } = setup();
    server.remove(HCP, 'fleet', 'hcp');
    expect(await writer.update(object, (current) => condition(current, 'X'), options)).toBeUndefined();
    server.put(HCP, chartProxy({}, { uid: 'successor' }));
    expect(await writer.update(object, (current) => condition(current, 'X'), options)).toBeUndefined();
    expect(server.peek(HCP, 'fleet', 'hcp')).not.toHaveProperty('status');
  });

  it('gives the newer of cache and own write', async () => {
    const { server, writer, object } = setup();
    const after = await writer.update(object, (current) => condition(current, 'X'), options);
    expect(writer.freshest(object)).toBe(after);
    const newer = server.edit<HelmChartProxy>(HCP, { namespace: 'fleet', name: 'hcp' }, (other) => {
      other.metadata.labels = { a: 'b' };
    });
    expect(writer.freshest(newer)).toBe(newer);
    expect(writer.freshest(object)).toBe(object);
  });
});
