import type { Container } from 'inversify';
import { existsSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import type { ResolveHookSync } from 'node:module';
import { isAbsolute, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { errorText } from '../telemetry/index.ts';
import type { Logger } from '../telemetry/index.ts';
import { AppError } from './errors.ts';
import type { ManagerOptions } from './options.ts';
import type { TOKENS } from './tokens.ts';

/** What a plugin is given. */
export interface PluginContext {
  /** Bind here: `container.bind(TOKENS.strategy).toConstantValue(…)`. What is bound many times (strategies, providers) stands beside Capstan's own; anything else may be rebound. */
  readonly container: Container;
  readonly TOKENS: typeof TOKENS;
  readonly options: ManagerOptions;
  readonly log: Logger;
}

/**
 * The default export of a module that `capstan manager --plugin` loads. Called once, before anything is made or asked of
 * a server; what it throws ends the start. It binds, and begins no work: what is bound is run and stopped by the manager.
 */
export type Plugin = (context: PluginContext) => void | Promise<void>;

/** For the types: `export default definePlugin(({ container, TOKENS }) => { … })`. */
export function definePlugin(plugin: Plugin): Plugin {
  return plugin;
}

/**
 * Loads and calls the plugins, in the order of their flags. Until the result is disposed of, `capstan` is this instance
 * for whatever they import later. Throws AppError (USAGE) that names the plugin and what to do.
 */
export async function applyPlugins(
  plugins: readonly string[],
  context: PluginContext,
  workingDirectory: string,
): Promise<Disposable> {
  if (plugins.length === 0) return { [Symbol.dispose]: () => undefined };
  const hooks = registerHooks({ resolve: ownInstance });
  const loaded = { [Symbol.dispose]: () => hooks.deregister() };
  try {
    for (const name of plugins) {
      await call(name, await load(name, workingDirectory), context);
      context.log.info('a plugin is loaded', { plugin: name });
    }
    return loaded;
  } catch (error) {
    loaded[Symbol.dispose]();
    throw error;
  }
}

/** Two strategies, or providers, of one name would be told apart by nobody. Throws AppError (USAGE). */
export function checkNames(kind: 'strategies' | 'providers', bound: readonly { readonly name: string }[]): void {
  const names = bound.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return;
  throw new AppError('USAGE', `two ${kind} are named "${twice}"`, {
    advice: 'give the one of your plugin another name, with a domain of yours before it: example.com/name',
  });
}

async function load(name: string, workingDirectory: string): Promise<Plugin> {
  const url = locate(name, workingDirectory);
  let module: { default?: unknown };
  try {
    module = (await import(url)) as { default?: unknown };
  } catch (error) {
    throw refused(name, `cannot be loaded: ${errorText(error)}`, 'run it alone with node to see where it fails', error);
  }
  if (typeof module.default === 'function') return module.default as Plugin;
  const exports = Object.keys(module).join(', ');
  throw refused(
    name,
    `has no function as its default export (it exports: ${exports === '' ? 'nothing' : exports})`,
    'export default definePlugin(({ container, TOKENS }) => { … }); docs/extending.md has examples',
  );
}

async function call(name: string, plugin: Plugin, context: PluginContext): Promise<void> {
  try {
    await plugin(context);
    checkNames('strategies', context.container.getAll(context.TOKENS.strategy));
  } catch (error) {
    if (error instanceof AppError) throw refused(name, error.message, error.advice, error);
    throw refused(name, `failed: ${errorText(error)}`, 'the message is its own; see its documentation', error);
  }
}

/** A file when it looks like one, else a package that is installed where the manager is started. */
function locate(name: string, workingDirectory: string): string {
  if (/^\.{0,2}\//.test(name) || isAbsolute(name) || /\.[cm]?[jt]s$/.test(name)) {
    const path = resolve(workingDirectory, name);
    if (existsSync(path)) return pathToFileURL(path).href;
    throw refused(
      name,
      'there is no such file',
      `it was looked for at ${path}; relative names start where the manager was started`,
    );
  }
  try {
    return pathToFileURL(createRequire(join(workingDirectory, 'plugin.js')).resolve(name)).href;
  } catch (error) {
    throw refused(
      name,
      'there is no such package',
      `install it in ${workingDirectory}, or name a file: ./${name}.js`,
      error,
    );
  }
}

/**
 * `import … from 'capstan'` in a plugin means the very instance that loads it, whatever lies in its node_modules: of two
 * instances, neither would know the other's errors and tokens. So a plugin that is a single file needs nothing installed.
 */
const ownInstance: ResolveHookSync = (specifier, context, next) => {
  const entry = { capstan: 'index', 'capstan/testing': 'testing/index' }[specifier];
  if (entry === undefined) return next(specifier, context);
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return { url: new URL(`../${entry}.${extension}`, import.meta.url).href, shortCircuit: true };
};

function refused(name: string, what: string, advice: string, cause?: unknown): AppError {
  return new AppError('USAGE', `--plugin ${name}: ${what}`, { advice, cause });
}
