import { describe, expect, it } from 'vitest';
import { HelmError } from './errors.ts';
import { helmArguments, waits } from './flags.ts';
import type { Command } from './flags.ts';
import type { HelmOptions } from './types.ts';

const release = { namespace: 'ns', name: 'demo' };

const plain: HelmOptions = {
  timeoutMs: 600_000,
  install: { createNamespace: false },
  upgrade: { maxHistory: 10 },
  uninstall: {},
};

interface Overrides extends Partial<Omit<HelmOptions, 'install' | 'upgrade' | 'uninstall'>> {
  install?: Partial<HelmOptions['install']>;
  upgrade?: Partial<HelmOptions['upgrade']>;
  uninstall?: Partial<HelmOptions['uninstall']>;
}

function options(overrides: Overrides = {}): HelmOptions {
  return {
    ...plain,
    ...overrides,
    install: { ...plain.install, ...overrides.install },
    upgrade: { ...plain.upgrade, ...overrides.upgrade },
    uninstall: { ...plain.uninstall, ...overrides.uninstall },
  };
}

type Operation = 'install' | 'upgrade' | 'rollback' | 'uninstall' | 'template';

function command(operation: Operation, overrides: Overrides = {}, more: Record<string, unknown> = {}): Command {
  const base = { release, options: options(overrides), chartPath: '/charts/demo.tgz', values: false, revision: 3 };
  return { operation, ...base, ...more };
}

/** A flag on helm 3, and on helm 4. */
type OnMajors = readonly [string, string];

/** What stands between the namespace and the operands. */
function flags(
  operation: Operation,
  major: number,
  overrides: Overrides = {},
  more: Record<string, unknown> = {},
): string[] {
  const all = helmArguments(command(operation, overrides, more), major);
  return all.slice(2, all.indexOf('--'));
}

describe('helmArguments', () => {
  it.each([
    ['install', 3, ['--hide-notes', '--timeout=600000ms']],
    [
      'install',
      4,
      ['--hide-notes', '--timeout=600000ms', '--disable-openapi-validation', '--force-conflicts', '--server-side=true'],
    ],
    ['upgrade', 3, ['--hide-notes', '--timeout=600000ms', '--reset-values', '--history-max=10']],
    ['upgrade', 4, ['--hide-notes', '--timeout=600000ms', '--reset-values', '--history-max=10']],
    ['rollback', 3, ['--timeout=600000ms', '--history-max=10']],
    ['rollback', 4, ['--timeout=600000ms', '--history-max=10']],
    ['uninstall', 3, ['--timeout=600000ms']],
    ['uninstall', 4, ['--timeout=600000ms']],
    ['template', 3, []],
    ['template', 4, []],
  ] as const)('%s with default options on helm %d', (operation, major, expected) => {
    expect(flags(operation, major)).toEqual(expected);
  });

  it.each([
    ['install', ['demo', '/charts/demo.tgz']],
    ['upgrade', ['demo', '/charts/demo.tgz']],
    ['template', ['demo', '/charts/demo.tgz']],
    ['rollback', ['demo', '3']],
    ['uninstall', ['demo']],
  ] as const)('%s has its operation first and its operands behind --', (operation, operands) => {
    const all = helmArguments(command(operation), 4);
    expect(all.slice(0, 2)).toEqual([operation, '--namespace=ns']);
    expect(all.slice(all.indexOf('--') + 1)).toEqual(operands);
  });

  it('takes a release name that begins with a dash for a name', () => {
    const all = helmArguments(
      { operation: 'uninstall', release: { namespace: 'ns', name: '--help' }, options: plain },
      4,
    );
    expect(all.slice(-2)).toEqual(['--', '--help']);
  });

  it('calls helm test with its timeout', () => {
    expect(helmArguments({ operation: 'test', release, timeoutMs: 5_000 }, 4)).toEqual([
      'test',
      '--namespace=ns',
      '--timeout=5000ms',
      '--',
      'demo',
    ]);
  });

  // Options, the operations that they hold for, and their flags on helm 3 and 4.
  const table: readonly (readonly [string, Overrides, readonly Operation[], OnMajors])[] = [
    [
      'disableHooks',
      { disableHooks: true },
      ['install', 'upgrade', 'rollback', 'uninstall', 'template'],
      ['--no-hooks', '--no-hooks'],
    ],
    ['wait', { wait: true }, ['install', 'upgrade', 'rollback', 'uninstall'], ['--wait', '--wait=legacy']],
    ['waitForJobs', { waitForJobs: true }, ['install', 'upgrade', 'rollback'], ['--wait-for-jobs', '--wait-for-jobs']],
    [
      'dependencyUpdate',
      { dependencyUpdate: true },
      ['install', 'upgrade', 'template'],
      ['--dependency-update', '--dependency-update'],
    ],
    [
      'timeout',
      { timeoutMs: 1_500 },
      ['install', 'upgrade', 'rollback', 'uninstall'],
      ['--timeout=1500ms', '--timeout=1500ms'],
    ],
    ['skipCRDs', { skipCRDs: true }, ['install', 'upgrade', 'template'], ['--skip-crds', '--skip-crds']],
    [
      'options (subNotes)',
      { subNotes: true },
      ['install', 'upgrade', 'template'],
      ['--render-subchart-notes', '--render-subchart-notes'],
    ],
    [
      'disableOpenAPIValidation',
      { disableOpenAPIValidation: true },
      ['install', 'upgrade'],
      ['--disable-openapi-validation', '--disable-openapi-validation'],
    ],
    ['atomic', { atomic: true }, ['install', 'upgrade'], ['--atomic', '--rollback-on-failure']],
    ['atomic waits', { atomic: true }, ['install', 'upgrade', 'rollback'], ['--wait', '--wait=legacy']],
    ['takeOwnership', { takeOwnership: true }, ['install', 'upgrade'], ['--take-ownership', '--take-ownership']],
    [
      'install.createNamespace',
      { install: { createNamespace: true } },
      ['install'],
      ['--create-namespace', '--create-namespace'],
    ],
    ['install.includeCRDs', { install: { includeCRDs: true } }, ['template'], ['--include-crds', '--include-crds']],
    ['upgrade.force', { upgrade: { force: true } }, ['upgrade', 'rollback'], ['--force', '--force-replace']],
    ['upgrade.resetValues', { upgrade: { resetValues: true } }, ['upgrade'], ['--reset-values', '--reset-values']],
    ['upgrade.reuseValues', { upgrade: { reuseValues: true } }, ['upgrade'], ['--reuse-values', '--reuse-values']],
    [
      'upgrade.resetThenReuseValues',
      { upgrade: { resetThenReuseValues: true } },
      ['upgrade'],
      ['--reset-then-reuse-values', '--reset-then-reuse-values'],
    ],
    [
      'upgrade.maxHistory',
      { upgrade: { maxHistory: 3 } },
      ['upgrade', 'rollback'],
      ['--history-max=3', '--history-max=3'],
    ],
    [
      'upgrade.maxHistory without a limit',
      { upgrade: { maxHistory: 0 } },
      ['upgrade', 'rollback'],
      ['--history-max=0', '--history-max=0'],
    ],
    [
      'upgrade.cleanupOnFail',
      { upgrade: { cleanupOnFail: true } },
      ['upgrade', 'rollback'],
      ['--cleanup-on-fail', '--cleanup-on-fail'],
    ],
    [
      'uninstall.keepHistory',
      { uninstall: { keepHistory: true } },
      ['uninstall'],
      ['--keep-history', '--keep-history'],
    ],
    [
      'uninstall.description',
      { uninstall: { description: 'moved away' } },
      ['uninstall'],
      ['--description=moved away', '--description=moved away'],
    ],
  ];

  it.each(table)('maps %s', (_name, overrides, operations, [onHelm3, onHelm4]) => {
    for (const operation of ['install', 'upgrade', 'rollback', 'uninstall', 'template'] as const) {
      const wanted = operations.includes(operation);
      expect(flags(operation, 3, overrides).includes(onHelm3), `${operation} on helm 3`).toBe(wanted);
      // On helm 4 an install is applied by the server, so that the check is left out anyhow.
      const anyhow = operation === 'install' && onHelm4 === '--disable-openapi-validation';
      expect(flags(operation, 4, overrides).includes(onHelm4), `${operation} on helm 4`).toBe(wanted || anyhow);
    }
  });

  it('lets the first of contradicting value options win, as Helm does', () => {
    expect(flags('upgrade', 4, { upgrade: { resetValues: true, reuseValues: true } })).not.toContain('--reuse-values');
    const both = flags('upgrade', 4, { upgrade: { reuseValues: true, resetThenReuseValues: true } });
    expect(both).toContain('--reuse-values');
    expect(both).not.toContain('--reset-then-reuse-values');
    expect(both).not.toContain('--reset-values');
  });

  it('gives values on standard input only when there are any', () => {
    for (const operation of ['install', 'upgrade', 'template'] as const) {
      expect(flags(operation, 4, {}, { values: true })).toContain('--values=-');
      expect(flags(operation, 4, {}, { values: false })).not.toContain('--values=-');
    }
  });

  it('leaves out the OpenAPI check exactly where the server checks itself', () => {
    const check = '--disable-openapi-validation';
    expect(flags('upgrade', 4, {}, { serverSide: true })).toContain(check);
    expect(flags('upgrade', 4, {}, { serverSide: false })).not.toContain(check);
    expect(flags('upgrade', 4)).not.toContain(check);
    expect(flags('install', 3)).not.toContain(check);
    expect(flags('upgrade', 3, {}, { serverSide: true })).not.toContain(check);
  });

  it('takes fields back from other managers under server-side apply, which alone knows them', () => {
    const take = '--force-conflicts';
    expect(flags('upgrade', 4, {}, { serverSide: true })).toContain(take);
    expect(flags('rollback', 4, {}, { serverSide: true })).toContain(take);
    expect(flags('upgrade', 4)).not.toContain(take);
    expect(flags('rollback', 4)).not.toContain(take);
    expect(flags('install', 3)).not.toContain(take);
  });

  it('replaces on the client side, since helm 4 does not on the server side', () => {
    const forced = flags('upgrade', 4, { upgrade: { force: true } }, { serverSide: true });
    expect(forced).toContain('--force-replace');
    expect(forced).toContain('--server-side=false');
    expect(forced).not.toContain('--force-conflicts');
    expect(forced).not.toContain('--disable-openapi-validation');
    expect(flags('rollback', 4, { upgrade: { force: true } }, { serverSide: true })).not.toContain('--force-conflicts');
  });

  it('recreates pods with helm 3, and refuses to with helm 4', () => {
    for (const operation of ['upgrade', 'rollback'] as const) {
      expect(flags(operation, 3, { upgrade: { recreate: true } })).toContain('--recreate-pods');
      const refused = refusal(() => flags(operation, 4, { upgrade: { recreate: true } }));
      expect(refused).toMatchObject({
        code: 'OptionUnsupported',
        field: 'options.upgrade.recreate',
        handling: 'never',
      });
      expect(refused.message).toContain('Helm 3');
    }
    expect(flags('install', 4, { upgrade: { recreate: true } })).toEqual(flags('install', 4));
  });

  it('installs what is in crds/ for includeCRDs, and refuses it together with skipCRDs', () => {
    expect(flags('install', 4, { install: { includeCRDs: true } })).toEqual(flags('install', 4));
    const refused = refusal(() => flags('install', 4, { skipCRDs: true, install: { includeCRDs: true } }));
    expect(refused).toMatchObject({ code: 'OptionUnsupported', field: 'options.install.includeCRDs' });
  });

  it('goes over an uninstalled release when asked to', () => {
    expect(flags('install', 3, {}, { replace: true })).toContain('--replace');
    expect(flags('install', 4, {}, { replace: true })).toContain('--replace');
    expect(flags('install', 4, {}, { replace: false })).not.toContain('--replace');
  });

  it('tells a template the versions that it is for', () => {
    const more = { kubeVersion: '1.35.0', apiVersions: ['example.com/v1', 'example.com/v1/Widget'] };
    expect(flags('template', 4, {}, more)).toEqual([
      '--kube-version=1.35.0',
      '--api-versions=example.com/v1',
      '--api-versions=example.com/v1/Widget',
    ]);
  });
});

describe('waits', () => {
  it.each([
    [command('install'), false],
    [command('install', { wait: true }), true],
    [command('upgrade', { waitForJobs: true }), true],
    [command('upgrade', { atomic: true }), true],
    [command('rollback', { wait: true }), true],
    [command('uninstall', { wait: true }), true],
    [command('template', { wait: true }), false],
    [{ operation: 'test', release, timeoutMs: 1 } as const, true],
  ])('%o', (given, expected) => {
    expect(waits(given)).toBe(expected);
  });
});

function refusal(fn: () => unknown): HelmError {
  try {
    fn();
  } catch (error) {
    if (error instanceof HelmError) return error;
    throw error;
  }
  throw new Error('was not refused');
}
