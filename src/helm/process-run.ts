import type { Pool } from './process-slots.ts';

export type Files = Readonly<Record<string, string | Uint8Array>>;

/** One run of helm. */
export interface HelmRun {
  /** For metrics and logs: install, upgrade, template … */
  readonly operation: string;
  /** For metrics and logs; absent where no cluster is concerned. */
  readonly cluster?: string;
  readonly args: readonly string[];
  /**
   * Put into the private directory, which is the working directory: name them relatively. `KUBECONFIG_FILE` is what
   * KUBECONFIG names. A function is called when there is a slot, for what may have changed by then.
   */
  readonly files?: Files | (() => Files);
  /** Fed to standard input, which is closed otherwise. */
  readonly stdin?: string;
  /** Milliseconds that the process may run, not counting the wait for a slot. */
  readonly limitMs: number;
  /** Milliseconds from SIGTERM to SIGKILL; the options' when absent. 0 for a run that has nothing to tidy up. */
  readonly graceMs?: number;
  /** Bytes of memory beyond which the run is ended, as `killed`. */
  readonly memoryLimit?: number;
  /** 'short' when absent. */
  readonly pool?: Pool;
  /** Bytes of standard output that are kept whole, for when it is the result; beyond them the run is ended. Absent: its head and tail are kept. */
  readonly wholeOutput?: number;
  readonly signal: AbortSignal;
}

/** How a run ended. Output may hold values and Secret contents: it is for parsing, never for a log. */
export interface HelmExit {
  /**
   * `exited` by itself with `code`; `limit`: ended at `limitMs`; `aborted`: by the signal or by `close`; `overflow`: it
   * wrote more than `wholeOutput`; `killed`: for want of memory, by its `memoryLimit` or from outside.
   */
  readonly end: 'exited' | 'limit' | 'aborted' | 'overflow' | 'killed';
  /** -1 unless it exited. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Milliseconds that the process ran. */
  readonly tookMs: number;
}
