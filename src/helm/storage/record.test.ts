import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decodeRawRecord, decodeRecord, encodeRawRecord, failedRecord, releaseStatus } from './record.ts';

// `data.release` of Secrets that helm 4.1.4 and 3.22.0 made of the same chart and values on a real API server.
const BY_HELM_4 = [
  'SDRzSUFBQUFBQUFDLzV4VTNXN2lPQlIrbGVqc3JhR0pHZHBKcExtWU1pMUxoN1pxWVFnd1ZKWGpPTmlEWTBleFEvL0VBKzF6N0l1dGJDaDB0Tj',
  'FmS1JmeDhmbjVmTTUzdmhkUXBHU1FRTTVLRFFpRUtqUWtMMUNJMnRqN25GVlNQN0VjRXNBaFBtNUZVYXNUam5FbndkMGtPbWwvd0JIK0VIVTc4',
  'UndRU1BJZkEzSm1hQzBxSzdTQ0JFcVNzNkRRZFVBQ3k0d0ZCTVlTMnhnUGJaY1VnZEtXT2RPWUU3VXlzRUZBT2FtdFExd3lTM0ppaWZ2ZnZha1',
  'FqN2FwR1NCWXM5cHM2MFJ0M080QUFsS0p5ZDY0eHQ1U0hTeXh5eTAxWFVHaUdpa1JXRlpXa3ZqcTMvY0Y5c2FqcSt2eDJhaHRIeDN3TFFxWTlE',
  'blBTdnNNQ0VxZFcrRWozdW5LSERib25ZeEV5dllUS2VVaDRXeDZXazNLeVJQRmNwMzkwTXY4eDlsWGdtVXovNktYTnpodTVxVlU0L1Q4b1ZkR0',
  '11K2ZyMmJUVzM0dFRrK3k4dHpPeDNvNVVQWmswT3VPNXVtam5FMnY1SERWNVZuNmJWbE1RMUhjVkFmL2RQSk04Ymw2RTVQTzBzZG9QcjFzOW5l',
  'ajA3Z1lYY1E5RWRyaFRjVnBYNmJ6NmNVelNlUG1XcHppeTV1cUptbDNkUzFPdjJTNFc1STB2NXBOUDMvTjBrazRTMjk1M2o4N0h2eHFtMWtheV',
  'd2eFdiQ09XUTdsaGN6NkUwN3h0MmJzTVBzYWtjNXdYQS9FdzNLV2RwdXM0MkxsT2xPWExsN1AwMGM3VkZkNmlQazZ3K1o0MEx0NHlEcFg0VENW',
  'RGUzYzhxei9ZR2cvZnM1N1VVVDcrZE1zdlpVREZjVzk1YWRQLzJJd2R3aldSRFp1Nm81aHhwQ2xjK1pNU3UwWVlpaG5KWG5seVBaMHlCbUdZZF',
  'R5M3pnTUUvODU0aGRDdW9UYm1IK2tCbEN0Q3JGMEFLUXdGcEx2RWRxRy92NGIzS0czcUFRZ3FGa2xCU1VHRXJ4QlVCSWxDcmRPQ2JSYXJZWDZK',
  'UmpwcHFZc0NYYTdjZlJud2kzVVlUZVNZQjB0MUVxb1BBbDZIc2NscVJicWRkZVM0TVh4TmdrV1hqOFdzRm1vblgwSHkxMXg0UzhBQWRkNjlkTU',
  'N1YWlXc3dJQ1Z3VVMySmNCQkJXeC9MREhSKzh1eDVzbi9sL2NIc0VDVUVDVTBwWTRSVEpKOE1LWkxOdUdIN2xiNTFwcFkxdENHVXVrUlA3UVZN',
  'dWE1R3dCbXcwZ1lHdW1ySHZlVDU3dUdXOTgzY2k4Vk5hTmNqTTFsdFNXNWZmRS9vVm1ubnpzSG1NY2U4bWt1cXdrKzF2M2o5RUpQbzZqRDk2Lz',
  'RzUzRObzhhU2huTFdlNzRsRE9YNHI3U1VsRGg5UXd5VnVpYStUYTBhTTE4QitET3MvOVZFU1BrWjJZcVFuZlMybkw5MmVxbWZMb3ZtZVhhemM4',
  'WUFwcy9BZ0FBLy85bUwrUFdWd1lBQUE9PQ==',
].join('');

const BY_HELM_3 = [
  'SDRzSUFBQUFBQUFDLzV4VTRXN2lPQkIrbFdqdXI2SEVMTFNKdEQ4V3R1WG9VbEFMUzRDbHFoekhpYjA0ZGhRN2xMYmlnZTQ1N3NWT1RpbDBkYj',
  'JUN3Y3RjQyOHkzOHg4L2w1QWtaeEJDQW5MTlNBUUt0VVF2a0FxU21NZkVsWkkvY1FTQ0FHM2NMZmgrNDEyYTRiYkllNkUva1VUWHdRdHY5czU3',
  'NndBZ1NUL01TRmhrdGthV2g4TUxVVmhoVllRUWs0UzVxVzY5SWhubWJHQXdGaGlLMVB6UEZSQW9MUmxMalRqUkcwTTdCRlFUa3JyNk9mTWtvUl',
  'k0cjRQRGFaaVo2dVNBWUl0SzgxckhiK0ptMjFBUUFveFB3YTN1STRVcDBqZy9pMDEzVUNvS2lrUldKWVhrdFRWZnh3TEhJTm40OG5zY3RxME8w',
  'ZjhsUVhNQjV6SHVYMkdQZm9nZ1VqWmZDSzVQT0dYaTE0eHorZFBGTXR0L0ZObnljL0xid1RMYXZWVlo3YzRxRmE1VkxQbzZyR2YreklaWEcyV2',
  'l6cytFYjN6T0wreXE1bk9oc3FlRC91ZDZTcmF5ZVZpTEVlYkRvK2o3MW02YUluMHRqamhvL2t6eFZmcVhVNjBqSGIrYW5GVEhlK212U0NkWGdk',
  'OTBiS2oyNExUZ1l4V2krdG5FZ1hWUlBUd3pXMVJrcWl6bVlqZTF4aDNjaElsNCtYaXk3YzRtcmVXMFIxUEJwZmQ0ZSsyV2thK25JZ3ZnclZOTn',
  'BMWE1oN01PY1hmcTVualhOZndkWXlEY2lnZXMyWFVxZUsyeTVYYldOMjRmTDJLZG5ha3hucUUrVGJHcGp2c1h6L0c3WEZyRk1tS3R1OTRQSGcw',
  'ZEJBOEozM2ZwNFBrYVJuZHlhSHlnMzcyK1RQczd4RnNpYXpjenB3K2pDR1pXd0puVW1xM1gwTTV5OG5iaGxNaEhkSWRuSzYwU2tYbUVxVXdGc0',
  'lmUG5xRi9ma0gzS1AzZnhPQW9HU0ZGSlFZQ1BFZVFVNlVTSjJJUTJnMEdtdjFtemZWVlVsWjZCMFVlZlozSGF6VlNaR2h0L1hYYWlOVUVucjlt',
  'c2NOS2RicVRlR2g5K0xrRkhycitnbXZZYjlXaC9pQmxydmlvcjRBQkZ6cnpTK3lkVmtORndVRXJncUVjQ3dEQ0FwaStlbjFuSDJvMlhjdC9sL2',
  'VOWU0xSUk4b3BTMXhQbUJDNzRVem1UY05QM08zRGxwb1l4dENHVXVrUlBXaEtyS1NKR3dOK3owZ1lGdW1yR3Z2RjZScjR4M1dyYXgycTdKU2Jx',
  'ZkdrdEt5NUlIWWY3Q3Ric3ZINTUwTDNIVzJSWFZlMU1iMWIvamdVK3RUMjNmd2doUGp4anl0S0dVc1lZblQycXYxUFJSYUNpcHFGNEdZcGJwaz',
  'lSZ2F0R1QxQk9DK1Z1MmJEL21vM3BrcENEMFlXc1BOcHczN3Z3SUFBUC8vQ1pwTjljWUZBQUE9',
].join('');

/** As a Secret's value. */
function stored(bytes: Buffer): string {
  return Buffer.from(bytes.toString('base64')).toString('base64');
}

describe('decodeRecord', () => {
  it.each([
    ['helm 4', BY_HELM_4, 'fix-helm', 'server'],
    ['helm 3', BY_HELM_3, 'fix-helm3', 'client'],
  ])('reads what %s wrote', async (_helm, data, namespace, applyMethod) => {
    const record = await decodeRecord(data);
    expect(record).toEqual({
      name: 'demo',
      namespace,
      version: 1,
      info: {
        status: 'deployed',
        description: 'made for a test',
        firstDeployed: record.info.lastDeployed,
        lastDeployed: expect.stringMatching(/^2026-11-30T23:25:1\d\.\d+Z$/) as string,
        deleted: '',
        notes: 'Thanks',
      },
      chart: { metadata: { name: 'fixture', version: '1.2.3', appVersion: '9' } },
      config: { message: 'hi', replicas: 2, list: [1, null, 'é'] },
      manifest: expect.stringContaining('data: {message: "hi"}') as string,
      hooks: [
        {
          name: 'demo-hook',
          kind: 'ConfigMap',
          manifest: expect.stringContaining('name: "demo-hook"') as string,
          events: ['post-install', 'post-upgrade'],
        },
      ],
      applyMethod,
    });
  });

  it('reads a record from before Helm compressed them', async () => {
    const data = stored(Buffer.from(JSON.stringify({ name: 'old', info: { status: 'superseded' }, version: 7 })));
    expect(await decodeRecord(data)).toMatchObject({
      name: 'old',
      version: 7,
      info: { status: 'superseded' },
      config: {},
      manifest: '',
      hooks: [],
    });
  });

  it.each([
    ['nothing', ''],
    ['no base64 of anything', 'AAAA'],
    ['no JSON', stored(gzipSync('{"secret": hunter2'))],
    ['a list', stored(gzipSync('[1]'))],
    ['half a record', stored(gzipSync('{}'.padEnd(5_000)).subarray(0, 20))],
  ])('refuses %s, and quotes nothing of it', async (_what, data) => {
    const refused = decodeRecord(data);
    await expect(refused).rejects.toMatchObject({ code: 'RecordInvalid' });
    await expect(refused).rejects.not.toThrow(/hunter2/);
  });
});

describe('failedRecord and encodeRawRecord', () => {
  it.each([
    ['helm 4', BY_HELM_4],
    ['helm 3', BY_HELM_3],
  ])('change status and description of what %s wrote, and nothing else', async (_helm, data) => {
    const before = await decodeRawRecord(data);
    const after = await decodeRawRecord(await encodeRawRecord(failedRecord(before, 'broken off')));
    expect(after['info']).toMatchObject({ status: 'failed', description: 'broken off', notes: 'Thanks' });
    expect({ ...after, info: before['info'] }).toEqual(before);
    expect(Object.keys(after)).toEqual(Object.keys(before));
    expect(await decodeRecord(data)).toMatchObject({ info: { status: 'deployed' } });
  });

  it('write no more than Helm does', async () => {
    const rewritten = await encodeRawRecord(await decodeRawRecord(BY_HELM_4));
    expect(rewritten.length).toBeLessThan(BY_HELM_4.length * 1.05);
  });
});

describe('releaseStatus', () => {
  it.each([
    ['pending-upgrade', 'pending-upgrade'],
    ['deployed', 'deployed'],
    ['', 'unknown'],
    ['something-new', 'unknown'],
  ])('of %j is %s', (word, status) => {
    expect(releaseStatus(word)).toBe(status);
  });
});
