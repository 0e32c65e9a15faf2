import { describe, expect, it } from 'vitest';
import { DEFAULT_HELM_TIMEOUT_MS, helmOptions, waits } from './options.ts';

describe('helmOptions', () => {
  it('fills in CAAPH’s defaults', () => {
    for (const spec of [undefined, {}, { install: {}, upgrade: {} }]) {
      expect(helmOptions(spec)).toMatchObject({
        wait: false,
        timeoutMs: DEFAULT_HELM_TIMEOUT_MS,
        install: { createNamespace: true },
        upgrade: { maxHistory: 10 },
        uninstall: {},
      });
    }
  });

  it('W6: keeps a false and a 0 that were said', () => {
    const options = helmOptions({ install: { createNamespace: false }, upgrade: { maxHistory: 0 } });
    expect(options.install.createNamespace).toBe(false);
    expect(options.upgrade.maxHistory).toBe(0);
  });

  it('maps every field', () => {
    const options = helmOptions({
      disableHooks: true,
      wait: true,
      waitForJobs: true,
      dependencyUpdate: true,
      timeout: '1h30m',
      skipCRDs: true,
      options: true,
      disableOpenAPIValidation: true,
      atomic: true,
      enableClientCache: true,
      takeOwnership: true,
      install: { createNamespace: true, includeCRDs: true },
      upgrade: {
        force: true,
        resetValues: true,
        reuseValues: true,
        resetThenReuseValues: true,
        recreate: true,
        maxHistory: 3,
        cleanupOnFail: true,
      },
      uninstall: { keepHistory: true, description: 'bye' },
    });
    expect(options).toEqual({
      disableHooks: true,
      wait: true,
      waitForJobs: true,
      dependencyUpdate: true,
      timeoutMs: 5_400_000,
      skipCRDs: true,
      subNotes: true,
      disableOpenAPIValidation: true,
      atomic: true,
      takeOwnership: true,
      install: { createNamespace: true, includeCRDs: true },
      upgrade: {
        force: true,
        resetValues: true,
        reuseValues: true,
        resetThenReuseValues: true,
        recreate: true,
        maxHistory: 3,
        cleanupOnFail: true,
      },
      uninstall: { keepHistory: true, description: 'bye' },
    });
  });

  it('atomic waits', () => {
    expect(helmOptions({ atomic: true }).wait).toBe(true);
  });

  it.each(['', 'soon', '0s', '-5m'])('takes the default for the timeout "%s"', (timeout) => {
    expect(helmOptions({ timeout }).timeoutMs).toBe(DEFAULT_HELM_TIMEOUT_MS);
  });
});

describe('waits', () => {
  it.each([
    [{ wait: true }, true],
    [{ waitForJobs: true }, true],
    [{ atomic: true }, true],
    [{}, false],
    [{ timeout: '1m' }, false],
  ])('%j: %s', (spec, expected) => {
    expect(waits(helmOptions(spec))).toBe(expected);
  });
});
