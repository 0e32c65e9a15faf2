import { availableParallelism, tmpdir } from 'node:os';

/** Proxies that helm, and what it starts, should use. Never taken from Capstan's own environment by this room. */
export interface ProxyOptions {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

/** How helm is run. `helmPath` has no default; the rest is filled in by `helmProcessOptions`. */
export interface HelmProcessOptions {
  /** Absolute path of the helm binary, 3.17 or newer, or 4.x. */
  readonly helmPath: string;
  /** Private directories are made in here. Kubeconfigs lie in them for as long as an operation runs: memory-backed is best. Not to be shared with another container: what a dead process left there is removed. */
  readonly workDir: string;
  /** PATH of the process: what exec plugins of kubeconfigs are looked for in, where these are allowed. */
  readonly path: string;
  readonly proxy: ProxyOptions;
  /** Further variables, e.g. what an allowed exec plugin needs. */
  readonly environment: Readonly<Record<string, string>>;
  /** Processes at a time that do not wait for workloads. */
  readonly maxProcesses: number;
  /** Processes at a time that wait for workloads (`wait`, `waitForJobs`, `atomic`, tests): idle nearly all of their time. */
  readonly maxWaitingProcesses: number;
  /** Milliseconds from SIGTERM, upon which helm records an install or upgrade as failed, to SIGKILL. */
  readonly graceMs: number;
  /** setpriv of util-linux, which ends helm when this process dies by SIGKILL; undefined: looked for; false: not used. */
  readonly setpriv?: string | false;
}

/** Two per core: helm computes about half of its time and waits for the API server for the rest (measured: 0.2 CPU-s in 0.35 s). */
const PROCESSES_PER_CORE = 2;

/** Of these, each takes about 60 MB and no CPU while it waits; the same number as the reconcilers' pool of waiting workers. */
const MAX_WAITING_PROCESSES = 50;

/** Time for helm to write the record of a broken-off release over a slow connection. */
const GRACE_MS = 10_000;

/** The one place of these defaults. */
export function helmProcessOptions(
  given: Partial<HelmProcessOptions> & Pick<HelmProcessOptions, 'helmPath'>,
): HelmProcessOptions {
  return {
    workDir: tmpdir(),
    path: '/usr/local/bin:/usr/bin:/bin',
    proxy: {},
    environment: {},
    maxProcesses: PROCESSES_PER_CORE * availableParallelism(),
    maxWaitingProcesses: MAX_WAITING_PROCESSES,
    graceMs: GRACE_MS,
    ...given,
  };
}
