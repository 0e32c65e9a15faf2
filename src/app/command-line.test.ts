import { describe, expect, it } from 'vitest';
import { readCommandLine } from './command-line.ts';
import { AppError } from './errors.ts';
import type { Environment, ManagerOptions } from './options.ts';

const ENV: Environment = {
  kubeconfig: '',
  home: '',
  noColor: false,
  podNamespace: '',
  hostname: 'host',
  isTerminal: false,
  temporaryDirectory: '/tmp',
  workingDirectory: '/tmp',
  path: '',
  serviceHost: '',
  tracing: false,
  servicePort: '',
  httpProxy: '',
  httpsProxy: '',
  noProxy: '',
};

async function options(...flags: string[]): Promise<ManagerOptions> {
  const command = await readCommandLine(['manager', ...flags], ENV, '1.2.3');
  if (command.kind !== 'manager') throw new Error(`the command was read as ${command.kind}`);
  return command.options;
}

async function refusal(...argv: string[]): Promise<string> {
  try {
    await readCommandLine(argv, ENV, '1.2.3');
  } catch (error) {
    if (error instanceof AppError) return `${error.message} (${error.exitCode})`;
    throw error;
  }
  throw new Error('was accepted');
}

describe('capstan manager flags', () => {
  it("has CAAPH's defaults", async () => {
    expect(await options()).toMatchObject({
      leaderElect: false,
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 2_000,
      namespace: '',
      watchFilter: '',
      chartProxyConcurrency: 10,
      releaseProxyConcurrency: 10,
      syncPeriodMs: 600_000,
      healthAddress: ':9440',
      diagnosticsAddress: ':8443',
      insecureDiagnostics: false,
      leaseName: 'controller-leader-election-caaph',
      driftDetection: 'Disabled',
      logLevel: 'info',
      logFormat: 'json',
      ignoredFlags: [],
    });
  });

  it("takes the arguments of CAAPH's Deployment", async () => {
    const read = await options(
      '--leader-elect',
      '--leader-elect-resource-namespace=caaph-system',
      '--diagnostics-address=:8443',
      '--insecure-diagnostics=false',
      '--sync-period=1m30s',
      '--v=2',
      '--webhook-port=9443',
      '--tls-min-version=VersionTLS13',
    );
    expect(read).toMatchObject({ leaderElect: true, insecureDiagnostics: false, syncPeriodMs: 90_000 });
    expect(read.ignoredFlags.map((entry) => entry.flag)).toEqual(['--webhook-port', '--tls-min-version']);
  });

  it.each([
    [['--v', '5'], { logLevel: 'debug' }],
    [['-v=0'], { logLevel: 'warn' }],
    [['--leader-elect=false'], { leaderElect: false }],
    [['--http2=false'], { http2: false }],
    [[], { sharding: false, shardWeight: 1 }],
    [
      ['--sharding', '--shard-weight=0', '--leader-elect-resource-namespace=x'],
      { sharding: true, shardWeight: 0, leaderElect: false },
    ],
    [['--namespace', 'fleet'], { namespace: 'fleet' }],
    [['--namespace=007'], { namespace: '007' }],
    [['--namespace=a', '--namespace=b'], { namespace: 'b' }],
    [['--logging-format=text'], { logFormat: 'text' }],
    [[], { driftConcurrency: 10, driftRetryDelaysMs: [0, 2_000, 6_000, 18_000, 54_000, 162_000, 300_000] }],
    [['--drift-detection=Warn', '--drift-concurrency=3'], { driftDetection: 'Warn', driftConcurrency: 3 }],
    [['--drift-retry-delays=0, 1m30s ,5m'], { driftRetryDelaysMs: [0, 90_000, 300_000] }],
  ])('%j', async (flags, expected) => {
    expect(await options(...flags)).toMatchObject(expected);
  });

  it.each([
    [['--sync-period=10'], '--sync-period must be a duration such as 90s, 10m or 1h30m, not "10" (2)'],
    [['--sync-periodd=10m'], 'there is no flag --sync-periodd; did you mean --sync-period? (2)'],
    [
      ['--helm-chart-proxy-concurrency=0'],
      '--helm-chart-proxy-concurrency must be a whole number of at least 1, not "0" (2)',
    ],
    [
      ['--helm-chart-proxy-concurrency=many'],
      '--helm-chart-proxy-concurrency must be a whole number of at least 1, not "many" (2)',
    ],
    [['--leader-elect=maybe'], '--leader-elect must be true or false, not "maybe" (2)'],
    [
      ['--leader-elect'],
      '--leader-elect needs a namespace for its Lease outside a cluster: add --leader-elect-resource-namespace (2)',
    ],
    [
      ['--sharding'],
      '--sharding needs a namespace for its Leases outside a cluster: add --leader-elect-resource-namespace (2)',
    ],
    [['--shard-weight=2'], '--shard-weight needs --sharding (2)'],
    [
      ['--sharding', '--leader-elect-resource-namespace=x', '--shard-weight=-1'],
      '--shard-weight must be a whole number of at least 0, not "-1" (2)',
    ],
    [['--log-format=xml'], '--log-format must be json, text or auto, not "xml" (2)'],
    [['--drift-detection=correct'], '--drift-detection must be one of Disabled, Warn, Correct, not "correct" (2)'],
    [['--drift-concurrency=0'], '--drift-concurrency must be a whole number of at least 1, not "0" (2)'],
    ...['', '2', '0s,,2s', '0s;2s', '0s,-2s'].map((text): [string[], string] => [
      [`--drift-retry-delays=${text}`],
      `--drift-retry-delays must be a list of durations such as 0s,2s,1m30s, not "${text}" (2)`,
    ]),
    [['extra'], 'unexpected argument "extra" (2)'],
    [
      ['--leader-elect', '--leader-elect-resource-namespace=x', '--leader-elect-lease-duration=5s'],
      '--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline (2)',
    ],
  ])('%j is refused', async (flags, message) => {
    expect(await refusal('manager', ...flags)).toBe(message);
  });

  it('tells a wrong command', async () => {
    expect(await refusal('manger')).toBe(
      'there is no command "manger"; there are manager, drift, tree, doctor and version (2)',
    );
    expect(await refusal('--leader-elect')).toContain('the command comes first');
  });

  it('prints help with every flag', async () => {
    const command = await readCommandLine(['manager', '--help'], ENV, '1.2.3');
    const text = command.kind === 'print' ? command.text : '';
    expect(text).toContain('--helm-release-proxy-concurrency');
    expect(text).toContain('--webhook-port');
  });
});
