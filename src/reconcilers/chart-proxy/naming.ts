/** Names and labels of HelmReleaseProxies: deterministic, so that a stale cache cannot make two (caaph W10), and valid whatever the chart, object and cluster are called (W22). */
import { createHash } from 'node:crypto';

/** A name is a DNS subdomain of up to 253 characters; 63 keeps it usable as a label value too. */
const MAX_NAME = 63;
/** Characters for the chart's name before the cluster's is cut. */
const MIN_CLUSTER_PART = 20;
const HASH_CHARS = 8;
/** Kubernetes: "Labels and Selectors", syntax of values. */
const MAX_LABEL_VALUE = 63;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/;

export interface NamedIn {
  readonly namespace: string;
  readonly name: string;
}

/**
 * `<chartName>-<clusterName>-<hash>`, as CAAPH's generated names look; the hash is of HelmChartProxy and cluster, so it is
 * the same after a restart, and another for every other placement.
 */
export function releaseProxyName(chartName: string, chartProxy: NamedIn, cluster: NamedIn): string {
  const hash = shortHash([chartProxy.namespace, chartProxy.name, cluster.namespace, cluster.name].join('\n'));
  const room = MAX_NAME - HASH_CHARS - 2;
  const clusterPart = dnsSafe(cluster.name);
  const chartRoom = Math.max(room - Math.max(clusterPart.length, 1), MIN_CLUSTER_PART);
  const chartPart = trimmed(dnsSafe(chartName).slice(0, chartRoom));
  const clusterCut = trimmed(clusterPart.slice(0, room - chartPart.length));
  return [chartPart, clusterCut, hash].filter((part) => part !== '').join('-');
}

/** The text itself when it is a valid label value, else its beginning and a hash. `exact` says which. */
export function labelValue(text: string): { value: string; exact: boolean } {
  if (text.length <= MAX_LABEL_VALUE && LABEL_VALUE.test(text)) return { value: text, exact: true };
  const head = trimmed(text.replaceAll(/[^-A-Za-z0-9_.]/g, '-').slice(0, MAX_LABEL_VALUE - HASH_CHARS - 1));
  return { value: [head, shortHash(text)].filter((part) => part !== '').join('-'), exact: false };
}

function dnsSafe(text: string): string {
  return trimmed(text.toLowerCase().replaceAll(/[^-a-z0-9]+/g, '-'));
}

/** Neither begins nor ends with anything but a letter or digit. */
function trimmed(text: string): string {
  return text.replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, HASH_CHARS);
}
