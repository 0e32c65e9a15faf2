/** The composition root, as the binary and library users see it. */
export { readCommandLine } from './command-line.ts';
export type { Command } from './command-line.ts';
export { createContainer } from './container.ts';
export { runDoctor } from './doctor-command.ts';
export { runDrift } from './drift-command.ts';
export { runTree } from './tree-command.ts';
export type { DriftOptions } from './drift/options.ts';
export type { Terminal } from './drift/terminal.ts';
export { readEnvironment } from './environment.ts';
export { AppError } from './errors.ts';
export { runManager } from './manager-command.ts';
export type { Environment, ManagerOptions } from './options.ts';
export { definePlugin } from './plugins.ts';
export type { Plugin, PluginContext } from './plugins.ts';
export { TOKENS } from './tokens.ts';
