import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { HelmProcessOptions } from './options.ts';

const SETPRIV_PATHS = ['/usr/bin/setpriv', '/bin/setpriv'];

/** setpriv answers in a millisecond; a machine that needs longer than this has none to rely on. Milliseconds. */
const PROBE_LIMIT_MS = 5_000;

/** What is spawned for helm with `args`. */
export interface Launch {
  readonly file: string;
  readonly args: readonly string[];
}

/**
 * Starts helm through setpriv where there is one, so that the kernel sends helm SIGTERM when this process dies
 * without having ended it (PR_SET_PDEATHSIG, prctl(2)): an upgrade is then recorded as failed and does not go on
 * unowned. Without setpriv, Helm's own --timeout ends it, and in a container the end of process 1 does.
 */
export class Launcher {
  readonly #options: HelmProcessOptions;
  #setpriv: Promise<string | undefined> | undefined;

  constructor(options: HelmProcessOptions) {
    this.#options = options;
  }

  async launch(args: readonly string[]): Promise<Launch> {
    this.#setpriv ??= this.#findSetpriv();
    const setpriv = await this.#setpriv;
    if (setpriv === undefined) return { file: this.#options.helmPath, args };
    return { file: setpriv, args: ['--pdeathsig', 'TERM', '--', this.#options.helmPath, ...args] };
  }

  async #findSetpriv(): Promise<string | undefined> {
    const { setpriv } = this.#options;
    if (setpriv === false) return undefined;
    for (const path of setpriv === undefined ? SETPRIV_PATHS : [setpriv]) {
      // Asked, not just looked for: busybox has a setpriv without this option.
      if (await works(path)) return path;
    }
    return undefined;
  }
}

async function works(path: string): Promise<boolean> {
  try {
    await promisify(execFile)(path, ['--pdeathsig', 'TERM', '--', 'true'], { timeout: PROBE_LIMIT_MS });
    return true;
  } catch {
    return false;
  }
}

/**
 * The whole environment of a helm process: nothing of Capstan's own comes through. Everything that Helm, client-go or
 * Go's runtime writes or reads lies in the private directory, and no in-cluster configuration can be found.
 */
export function bareEnvironment(directory: string, options: HelmProcessOptions): Record<string, string> {
  const { proxy } = options;
  return {
    ...options.environment,
    ...(proxy.httpProxy === undefined ? {} : { HTTP_PROXY: proxy.httpProxy, http_proxy: proxy.httpProxy }),
    ...(proxy.httpsProxy === undefined ? {} : { HTTPS_PROXY: proxy.httpsProxy, https_proxy: proxy.httpsProxy }),
    ...(proxy.noProxy === undefined ? {} : { NO_PROXY: proxy.noProxy, no_proxy: proxy.noProxy }),
    PATH: options.path,
    HOME: directory,
    TMPDIR: directory,
    XDG_CACHE_HOME: `${directory}/cache`,
    XDG_CONFIG_HOME: `${directory}/config`,
    XDG_DATA_HOME: `${directory}/data`,
    HELM_CACHE_HOME: `${directory}/cache/helm`,
    HELM_CONFIG_HOME: `${directory}/config/helm`,
    HELM_DATA_HOME: `${directory}/data/helm`,
    HELM_PLUGINS: `${directory}/data/helm/plugins`,
    HELM_REGISTRY_CONFIG: `${directory}/config/helm/registry/config.json`,
    HELM_REPOSITORY_CONFIG: `${directory}/config/helm/repositories.yaml`,
    HELM_REPOSITORY_CACHE: `${directory}/cache/helm/repository`,
    HELM_DRIVER: 'secret',
    KUBECONFIG: `${directory}/${KUBECONFIG_FILE}`,
    // A helm process lives for half a second: collecting garbage at four times the usual heap growth takes a quarter off
    // its CPU for 15 MB more (measured on the chart of 26 objects), and the soft limit keeps large charts from more.
    GOGC: '400',
    GOMEMLIMIT: '256MiB',
  };
}

/** Name, in the private directory, of the file that KUBECONFIG names. */
export const KUBECONFIG_FILE = 'kubeconfig';
