import { stringify } from 'yaml';
import { RestClient } from '../../kube/index.ts';
import type { CallOptions, KubeClient } from '../../kube/index.ts';
import { errorText } from '../../telemetry/index.ts';
import { explain } from '../drift/explain.ts';
import { harmless, paletteFor } from '../drift/terminal.ts';
import type { Palette, Terminal } from '../drift/terminal.ts';
import { connectUser } from '../drift/user-kubeconfig.ts';
import type { UserCluster } from '../drift/user-kubeconfig.ts';
import { AppError } from '../errors.ts';
import type { Environment } from '../options.ts';
import type { InspectOptions } from './options.ts';

/** What a command works with. */
export interface Inspection {
  readonly user: UserCluster;
  readonly client: KubeClient;
  /** undefined: all. */
  readonly namespace: string | undefined;
  readonly call: CallOptions & { readonly signal: AbortSignal };
}

export interface Command {
  /** As in `capstan <name>`. */
  readonly name: string;
  readonly options: InspectOptions;
  readonly env: Environment;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

/** What `diff` calls trouble. */
const TROUBLE = 2;
/** A shell's code for what SIGINT ended. */
const INTERRUPTED = 130;
/** Where nothing else says which: as kubectl. */
const DEFAULT_NAMESPACE = 'default';

/** Connects as kubectl does, runs `work`, closes; resolves with the exit code. What fails is told, without a stack trace. */
export async function inspect(command: Command, work: (inspection: Inspection) => Promise<number>): Promise<number> {
  const { options, signal, terminal } = command;
  try {
    const user = connectUser(options, command.env);
    try {
      const own = user.connection.namespace ?? DEFAULT_NAMESPACE;
      return await work({
        user,
        client: new RestClient(user.connection),
        namespace: options.namespace === '' ? own : options.namespace,
        call: { signal, timeoutMs: options.timeoutMs },
      });
    } finally {
      await user.connection.close();
    }
  } catch (error) {
    terminal.err(`capstan ${command.name}: ${told(error)}\n`);
    return signal.aborted ? INTERRUPTED : TROUBLE;
  }
}

/** Prints data as -o asks, or `text` in colour where a terminal reads. */
export function printAs(command: Command, data: unknown, text: (palette: Palette) => string): void {
  const { options, env, terminal } = command;
  if (options.output === 'json') terminal.out(`${JSON.stringify(data, undefined, 2)}\n`);
  else if (options.output === 'yaml') terminal.out(stringify(data, { lineWidth: 0, aliasDuplicateObjects: false }));
  else {
    const auto = terminal.isTerminal && !env.noColor;
    terminal.out(text(paletteFor(options.color === 'always' || (options.color === 'auto' && auto))));
  }
}

function told(error: unknown): string {
  if (!(error instanceof AppError)) return harmless(explain(error) || errorText(error));
  return harmless(error.message) + (error.advice === '' ? '' : `\n  ${error.advice}`);
}
