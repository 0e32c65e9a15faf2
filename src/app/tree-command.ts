import type { Terminal } from './drift/terminal.ts';
import { readFleet } from './inspect/objects.ts';
import type { TreeOptions } from './inspect/options.ts';
import { inspect, printAs } from './inspect/run.ts';
import type { Environment } from './options.ts';
import { treeSummary, treeText } from './tree/print.ts';
import { fleetTree, treeExitCode } from './tree/tree.ts';

/**
 * Prints clusters, their releases and how they are, from the objects of the management cluster alone. Resolves with the
 * exit code: 0 all is well, 1 something needs attention, 2 trouble. Who calls: main; `signal` ends it early.
 */
export async function runTree(
  options: TreeOptions,
  env: Environment,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const command = { name: 'tree', options, env, terminal, signal };
  return inspect(command, async ({ client, namespace, call }) => {
    const tree = fleetTree(await readFleet(client, namespace, call), options);
    printAs(command, tree, (palette) => {
      const body = treeText(tree, palette);
      return `${body === '' ? '' : `${body}\n`}${treeSummary(tree)}\n`;
    });
    for (const name of tree.unknown) terminal.err(`error: there is no Cluster, HelmChartProxy or release "${name}"\n`);
    if (tree.branches.length === 0 && namespace !== undefined && tree.unknown.length === 0 && !options.onlyUnhealthy)
      terminal.err(`note: this is namespace ${namespace}; -A looks in all namespaces\n`);
    return treeExitCode(tree);
  });
}
