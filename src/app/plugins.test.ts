import { Container } from 'inversify';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { continuousStrategy } from '../reconcilers/index.ts';
import type { Strategy } from '../reconcilers/index.ts';
import { silentLogger } from '../telemetry/index.ts';
import { AppError } from './errors.ts';
import type { ManagerOptions } from './options.ts';
import { applyPlugins, checkNames } from './plugins.ts';
import { TOKENS } from './tokens.ts';

const STRATEGY = `{ name: 'example.com/keep', handedOff: () => false, reconcile: async (release) => release.installOrUpgrade(), uninstallsOnDelete: false, followsSelector: true }`;

let directory: string;
let container: Container;

beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), 'capstan-plugins-')));
  container = new Container({ defaultScope: 'Singleton' });
  container.bind(TOKENS.strategy).toConstantValue(continuousStrategy);
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

function write(name: string, text: string): void {
  const path = join(directory, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

async function apply(...plugins: string[]): Promise<void> {
  const options = { plugins } as unknown as ManagerOptions;
  using _loaded = await applyPlugins(plugins, { container, TOKENS, options, log: silentLogger }, directory);
}

function strategies(): string[] {
  return container.getAll<Strategy>(TOKENS.strategy).map(({ name }) => name);
}

async function refusal(...plugins: string[]): Promise<string> {
  const error: unknown = await apply(...plugins).catch((thrown: unknown) => thrown);
  if (!(error instanceof AppError)) throw new Error(`no AppError: ${String(error)}`);
  expect([error.code, error.exitCode, error.advice === '']).toEqual(['USAGE', 2, false]);
  return error.message;
}

describe('a plugin', () => {
  it.each(['x.mjs', './x.mjs', 'deep/x.mjs'])('binds beside what is there, from the file %s', async (name) => {
    write(
      name,
      `export default ({ container, TOKENS }) => { container.bind(TOKENS.strategy).toConstantValue(${STRATEGY}); };`,
    );
    await apply(name);
    expect(strategies()).toEqual(['Continuous', 'example.com/keep']);
  });

  it('may be CommonJS, may wait, and may come with an absolute name', async () => {
    write(
      'x.cjs',
      `module.exports = async ({ container, TOKENS }) => { await null; container.bind(TOKENS.strategy).toConstantValue(${STRATEGY}); };`,
    );
    await apply(join(directory, 'x.cjs'));
    expect(strategies()).toEqual(['Continuous', 'example.com/keep']);
  });

  it('may be a package that is installed where the manager is started', async () => {
    write('node_modules/@us/keep/package.json', '{"name":"@us/keep","main":"main.js","type":"commonjs"}');
    write(
      'node_modules/@us/keep/main.js',
      `module.exports = ({ container, TOKENS }) => { container.bind(TOKENS.strategy).toConstantValue(${STRATEGY}); };`,
    );
    await apply('@us/keep');
    expect(strategies()).toEqual(['Continuous', 'example.com/keep']);
  });

  it.each([
    ['./absent.js', /^--plugin \.\/absent\.js: there is no such file$/],
    ['absent', /^--plugin absent: there is no such package$/],
  ])('that is not there is told: %s', async (name, message) => {
    expect(await refusal(name)).toMatch(message);
  });

  it.each([
    ['export const x = 1; export const y = 2;', /has no function as its default export \(it exports: x, y\)/],
    ['', /has no function as its default export \(it exports: nothing\)/],
    ['export default { a: 1 };', /has no function/],
    ['throw new Error("while loading");', /cannot be loaded: .*while loading/],
    ['import "not-installed-anywhere";', /cannot be loaded: .*not-installed-anywhere/],
    ['export default () => { throw new Error("no window is set"); };', /failed: .*no window is set/],
    ['export default async () => { throw new Error("later"); };', /failed: .*later/],
  ])('that cannot do its work is told: %s', async (text, message) => {
    write('x.mjs', text);
    expect(await refusal('x.mjs')).toMatch(message);
  });

  it('may not give a strategy a name that is taken', async () => {
    write(
      'x.mjs',
      `export default ({ container, TOKENS }) => { container.bind(TOKENS.strategy).toConstantValue({ ...${STRATEGY}, name: 'Continuous' }); };`,
    );
    expect(await refusal('x.mjs')).toMatch(/^--plugin x\.mjs: two strategies are named "Continuous"$/);
  });

  it('comes in the order of the flags, and the first that fails is named', async () => {
    const binds = (name: string): string =>
      `export default ({ container, TOKENS }) => { container.bind(TOKENS.strategy).toConstantValue({ ...${STRATEGY}, name: '${name}' }); };`;
    write('a.mjs', binds('a'));
    write('b.mjs', binds('b'));
    await apply('b.mjs', 'a.mjs');
    expect(strategies()).toEqual(['Continuous', 'b', 'a']);
    expect(await refusal('b.mjs', 'nothing.mjs')).toMatch(/b\.mjs/);
  });
});

it('two providers of one name are refused, as nobody could tell their clusters apart', () => {
  expect(() => checkNames('providers', [{ name: 'files' }, { name: 'capi' }, { name: 'files' }])).toThrow(
    /two providers are named "files"/,
  );
  expect(() => checkNames('providers', [{ name: 'files' }, { name: 'capi' }])).not.toThrow();
});
