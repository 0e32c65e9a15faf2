import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readCommandLine } from '../command-line.ts';
import { AppError } from '../errors.ts';
import type { Environment } from '../options.ts';
import { DRIFT_FLAGS } from './options.ts';
import type { DriftFlag, DriftOptions } from './options.ts';

const ENV: Environment = {
  kubeconfig: '/from/environment',
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

async function options(...args: string[]): Promise<DriftOptions> {
  const command = await readCommandLine(['drift', ...args], ENV, '1.2.3');
  if (command.kind !== 'drift') throw new Error(`the command was read as ${command.kind}`);
  return command.options;
}

async function refusal(...args: string[]): Promise<AppError> {
  try {
    await options(...args);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('was accepted');
}

describe('capstan drift flags', () => {
  it('has defaults', async () => {
    expect(await options()).toEqual({
      kubeconfig: '/from/environment',
      context: '',
      namespace: '',
      allNamespaces: false,
      cluster: undefined,
      direct: false,
      names: [],
      extraFields: undefined,
      includeCRDs: false,
      dryRun: true,
      view: 'table',
      output: 'text',
      color: 'auto',
      timeoutMs: 15_000,
      concurrency: 20,
      allowExecPlugins: false,
      userAgent: 'capstan-drift/1.2.3',
    });
  });

  it.each([
    [['-n', 'shop'], { namespace: 'shop', names: [] }],
    [['-nshop', 'web'], { namespace: 'shop', names: ['web'] }],
    [['-n=shop'], { namespace: 'shop' }],
    [['web', '-A', 'api'], { allNamespaces: true, names: ['web', 'api'] }],
    [['--diff', 'web'], { view: 'diff', names: ['web'] }],
    [['-ojson'], { output: 'json' }],
    [['-o', 'yaml', '--ignore-rules'], { output: 'yaml', view: 'ignore-rules' }],
    [['--cluster', 'fleet/c1'], { cluster: { namespace: 'fleet', name: 'c1' } }],
    [['--no-dry-run', '--timeout=1m30s'], { dryRun: false, timeoutMs: 90_000 }],
    [['--', '-n'], { namespace: '', names: ['-n'] }],
    [['12', '1e3'], { names: ['12', '1e3'] }],
  ])('reads %j', async (args, expected) => {
    expect(await options(...args)).toMatchObject(expected);
  });

  it.each([
    [['-x'], 'there is no flag -x'],
    [['--extra-feilds', 'Report'], 'did you mean --extra-fields?'],
    [['--extra-fields', 'All'], '--extra-fields must be one of Ignore, Report, Remove'],
    [['-n', 'a', '-A'], 'exclude each other'],
    [['--direct', '--cluster', 'a/b'], 'exclude each other'],
    [['--diff', '--ignore-rules'], 'exclude each other'],
    [['--diff', '-o', 'json'], '--diff is for -o text only'],
    [['--cluster', 'c1'], '--cluster must be namespace/name'],
    [['--cluster', 'a/b/c'], '--cluster must be namespace/name'],
    [['-o', 'xml'], '--output must be one of text, json, yaml'],
    [['--concurrency', '0'], '--concurrency must be a whole number'],
    [['--timeout', '0'], '--timeout must be at least'],
    [['-A=maybe'], '--all-namespaces must be true or false'],
  ])('refuses %j', async (args, message) => {
    const error = await refusal(...args);
    expect(error.message).toContain(message);
    expect([error.exitCode, error.advice]).toEqual([2, "run 'capstan drift --help' for the flags"]);
  });

  it('prints help with every flag', async () => {
    const command = await readCommandLine(['drift', '-h'], ENV, '1.2.3');
    if (command.kind !== 'print') throw new Error(`the command was read as ${command.kind}`);
    for (const { name } of DRIFT_FLAGS) expect(command.text).toContain(`--${name}`);
  });
});

describe('docs/cli.md', () => {
  const page = readFileSync(new URL('../../../docs/cli.md', import.meta.url), 'utf8');
  const rows = new Map(
    page.split('\n').flatMap((line) => {
      const cells = line.split('|').map((cell) => cell.trim());
      const name = /`--([\w-]+)`$/.exec(cells[1] ?? '')?.[1];
      return name === undefined ? [] : [[name, cells.slice(1, -1)] as const];
    }),
  );

  function expected(flag: DriftFlag): string[] {
    const names = flag.letter === undefined ? `\`--${flag.name}\`` : `\`-${flag.letter}\`, \`--${flag.name}\``;
    return [names, flag.default === '' ? '' : `\`${String(flag.default)}\``, flag.about];
  }

  it.each(DRIFT_FLAGS.map((flag) => [flag.name, flag] as const))('has --%s as it is', (name, flag) => {
    expect(rows.get(name)).toEqual(expected(flag));
  });

  it('has no flag that is not there', () => {
    expect([...rows.keys()].sort()).toEqual(DRIFT_FLAGS.map(({ name }) => name).sort());
  });
});
