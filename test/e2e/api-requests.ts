import type { TestCluster } from '../support/index.ts';

/** Verbs of kube-apiserver's own metrics that change something. */
export const WRITES = ['POST', 'PUT', 'PATCH', 'APPLY', 'DELETE', 'DELETECOLLECTION'];

/** One row of apiserver_request_total. */
export interface ApiRequests {
  verb: string;
  group: string;
  resource: string;
  count: number;
}

/**
 * What a cluster's API server has counted, from its own metrics: neither client can forget to count. Leases and what
 * the API server and the controller manager do for themselves are among them: compare resources, not sums.
 */
export async function apiRequests(cluster: TestCluster): Promise<ApiRequests[]> {
  const text = await cluster.api.request<string>('GET', '/metrics');
  const rows: ApiRequests[] = [];
  for (const line of text.split('\n')) {
    const match = /^apiserver_request_total\{(.*)\} (\S+)$/.exec(line);
    if (!match) continue;
    const label = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(match[1] ?? '')?.[1] ?? '';
    rows.push({ verb: label('verb'), group: label('group'), resource: label('resource'), count: Number(match[2]) });
  }
  return rows;
}

/** Sum over the rows that a filter accepts. */
export function countRequests(rows: readonly ApiRequests[], accept: (row: ApiRequests) => boolean): number {
  return rows.filter(accept).reduce((sum, row) => sum + row.count, 0);
}
