import { coerce, lt, major as majorOf } from 'semver';
import { raceAbort } from '../kube/index.ts';
import { CLUSTER_ATTRIBUTE, NAMESPACE_ATTRIBUTE, inSpan } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { bounded, helmFailure, lastError } from './engine-failure.ts';
import { redactValues } from './engine-redact.ts';
import { HelmError, isHelmError } from './errors.ts';
import { helmArguments, waits } from './flags.ts';
import type { Command } from './flags.ts';
import { HelmGate } from './gate.ts';
import type { Admission } from './gate.ts';
import { KUBECONFIG_FILE } from './process-launcher.ts';
import type { HelmExit, HelmProcesses, HelmRun } from './process.ts';
import type {
  DeployRequest,
  HelmEngine,
  HelmOptions,
  HelmTarget,
  OperationControl,
  ReleaseKey,
  RenderRequest,
} from './types.ts';
import { parseValues, valuesAsJson } from './values-yaml.ts';

/** The oldest Helm that has every flag that is used (--take-ownership came last). */
const OLDEST = '3.17.0';

/** The newest major version whose flags are known. */
const NEWEST_MAJOR = 4;

/** Milliseconds for what is done in the process alone: parsing a chart takes a second at most. */
const LOCAL_LIMIT_MS = 60_000;

/** Milliseconds for an operation's requests, over and above what Helm waits for. */
const REQUESTS_LIMIT_MS = 60_000;

/** Bytes of a rendered manifest: a release's record holds 1 MiB at most, compressed about tenfold. */
const MAX_MANIFEST = 64 * 1024 * 1024;

/**
 * Does Helm's work by running the real helm. Nobody above this class knows that a process is run. Aborting an install or
 * upgrade makes helm record it as failed where there is time for it; else a `pending-*` record stays.
 */
export class ProcessHelmEngine implements HelmEngine {
  readonly #processes: HelmProcesses;
  readonly #telemetry: Telemetry;
  readonly #gate: HelmGate;
  #version: Promise<{ major: number; full: string }> | undefined;

  constructor(processes: HelmProcesses, telemetry: Telemetry) {
    this.#processes = processes;
    this.#telemetry = telemetry;
    this.#gate = new HelmGate(telemetry.log);
  }

  /** Helm's processes that run now, of this engine and of whoever shares them. */
  get running(): number {
    return this.#processes.running;
  }

  /** Ends everything that runs, within `graceMs`, and takes nothing new: for draining. */
  async close(graceMs?: number): Promise<void> {
    await this.#processes.close(graceMs);
    await this.#gate.close();
  }

  async version(control: OperationControl): Promise<{ major: number; full: string }> {
    if (control.signal.aborted) throw cancelled(control);
    // Asked once, for all who wait; a failure is asked again, since a person may have mended it.
    this.#version ??= this.#askVersion().catch((error: unknown) => {
      this.#version = undefined;
      throw error;
    });
    return raceAbort(this.#version, control.signal).catch((error: unknown) => {
      throw control.signal.aborted ? cancelled(control) : error;
    });
  }

  async install(target: HelmTarget, request: DeployRequest, control: OperationControl): Promise<void> {
    await this.#deploy('install', target, request, control);
  }

  async upgrade(target: HelmTarget, request: DeployRequest, control: OperationControl): Promise<void> {
    await this.#deploy('upgrade', target, request, control);
  }

  async rollback(
    target: HelmTarget,
    request: { release: ReleaseKey; revision: number; options: HelmOptions; serverSide?: boolean },
    control: OperationControl,
  ): Promise<void> {
    await this.#operate({ operation: 'rollback', ...request }, { target, control });
  }

  async uninstall(
    target: HelmTarget,
    request: { release: ReleaseKey; options: HelmOptions },
    control: OperationControl,
  ): Promise<void> {
    try {
      await this.#operate({ operation: 'uninstall', ...request }, { target, control });
    } catch (error) {
      if (!isHelmError(error) || !isGone(error)) throw error;
    }
  }

  async test(
    target: HelmTarget,
    request: { release: ReleaseKey; timeoutMs: number },
    control: OperationControl,
  ): Promise<void> {
    await this.#operate({ operation: 'test', ...request }, { target, control });
  }

  async template(request: RenderRequest, control: OperationControl): Promise<string> {
    const { release, chart, values, options, kubeVersion, apiVersions } = request;
    const stdin = valuesInput(values);
    const command: Command = {
      operation: 'template',
      release,
      chartPath: chart.path,
      values: stdin !== undefined,
      options,
      ...(kubeVersion === undefined ? {} : { kubeVersion }),
      ...(apiVersions === undefined ? {} : { apiVersions }),
    };
    return this.#operate(command, { control, values, stdin });
  }

  async #deploy(
    operation: 'install' | 'upgrade',
    target: HelmTarget,
    request: DeployRequest,
    control: OperationControl,
  ): Promise<void> {
    const { chart, values, ...rest } = request;
    const stdin = valuesInput(values);
    const command: Command = { operation, ...rest, chartPath: chart.path, values: stdin !== undefined };
    await this.#operate(command, { target, control, values, stdin });
  }

  /** Runs a command; resolves with its standard output, rejects with a HelmError. */
  async #operate(command: Command, call: Call): Promise<string> {
    const { operation, release } = command;
    const { target } = call;
    const attributes = {
      ...(target === undefined ? {} : { [CLUSTER_ATTRIBUTE]: target.cluster }),
      [NAMESPACE_ATTRIBUTE]: release.namespace,
      'capstan.release.name': release.name,
    };
    return inSpan(this.#telemetry.tracer, `helm ${operation}`, attributes, async () => {
      const { major } = await this.version(call.control);
      // Until the process has ended.
      using admission = target?.passage && (await this.#gate.admit(target.cluster, target.passage));
      const exit = await this.#processes.run({
        operation,
        args: helmArguments(command, major),
        pool: waits(command) ? 'wait' : 'short',
        limitMs: limitOf(command, call.control),
        signal: call.control.signal,
        ...(call.stdin === undefined ? {} : { stdin: call.stdin }),
        ...(operation === 'template' ? { wholeOutput: MAX_MANIFEST } : {}),
        ...(target === undefined ? {} : runOn(target, admission)),
      });
      if (exit.end === 'exited' && exit.code === 0) return exit.stdout;
      throw failureOf(exit, command, call);
    });
  }

  async #askVersion(): Promise<{ major: number; full: string }> {
    const exit = await this.#processes.run({
      operation: 'version',
      args: ['version', '--template={{.Version}}'],
      limitMs: LOCAL_LIMIT_MS,
      // Belongs to no caller: it ends at its limit, or with the engine.
      signal: new AbortController().signal,
    });
    if (exit.end === 'aborted') throw new HelmError('Cancelled', 'Capstan is shutting down');
    if (exit.end !== 'exited' || exit.code !== 0) throw new HelmError('HelmMissing', whyNoVersion(exit));
    const full = exit.stdout.trim();
    const version = coerce(full);
    if (version === null)
      throw new HelmError('HelmMissing', 'the configured helm does not tell its version: it is no Helm');
    if (lt(version, OLDEST)) {
      throw new HelmError('HelmTooOld', `Helm ${full} is too old: install Helm 3.17 or newer, or 4.x`);
    }
    const major = majorOf(version);
    if (major > NEWEST_MAJOR) {
      this.#telemetry.log.warn('this Helm is newer than Capstan knows; it is used like Helm 4', { version: full });
    }
    return { major, full };
  }
}

interface Call {
  readonly target?: HelmTarget;
  readonly control: OperationControl;
  /** As the user wrote them: what must not stand in an error. */
  readonly values?: string;
  readonly stdin?: string | undefined;
}

/** A helm that cannot tell its version, in its own words: no cluster, chart or values have come near it. */
function whyNoVersion({ end, code, stderr }: HelmExit): string {
  const how = end === 'exited' ? `exit code ${code}` : end;
  const said = bounded(stderr.trim());
  return `the configured helm does not tell its version (${how})${said === '' ? '' : `: ${said}`}`;
}

function runOn(target: HelmTarget, admission: Admission | undefined): Pick<HelmRun, 'cluster' | 'files'> {
  const kubeconfig = (): string => admission?.kubeconfig ?? target.kubeconfig();
  return { cluster: target.cluster, files: () => ({ [KUBECONFIG_FILE]: kubeconfig() }) };
}

/** Undefined when there are none: then none are given, which is not the same as an empty file to every Helm. */
function valuesInput(values: string): string | undefined {
  const json = valuesAsJson(values);
  return json === '{}' ? undefined : json;
}

/**
 * Helm's --timeout is for each thing it waits for: hooks before, workloads, hooks after, and with `atomic` once more for
 * the way back. So without a limit of the caller's, the operation has as many timeouts as it has such phases.
 */
function limitOf(command: Command, control: OperationControl): number {
  if (command.operation === 'template') return control.limitMs ?? LOCAL_LIMIT_MS;
  if (command.operation === 'test') return command.timeoutMs + (control.limitMs ?? REQUESTS_LIMIT_MS);
  const { timeoutMs, atomic } = command.options;
  const phases = atomic === true ? 6 : 3;
  return control.limitMs === undefined ? phases * timeoutMs + REQUESTS_LIMIT_MS : timeoutMs + control.limitMs;
}

function isGone(error: HelmError): boolean {
  return error.code === 'ReleaseNotFound' || /^the release named .* is already deleted$/.test(error.message);
}

function failureOf(exit: HelmExit, command: Command, call: Call): HelmError {
  const { operation, release } = command;
  const redact = (text: string): string =>
    redactValues(text, parseValues(call.values ?? ''), [release.name, release.namespace, call.target?.cluster ?? '']);
  switch (exit.end) {
    case 'aborted':
      return cancelled(call.control);
    case 'limit': {
      const said = lastError(exit.stderr);
      const seconds = String(Math.round(exit.tookMs / 1000));
      const what = `helm ${operation} was ended after ${seconds} s without a result`;
      return new HelmError('Timeout', said === undefined ? what : `${what}: ${bounded(redact(said))}`);
    }
    case 'overflow':
      return new HelmError('ChartInvalid', `the chart renders to more than ${String(MAX_MANIFEST)} bytes`);
    case 'killed':
      return new HelmError('Failed', `helm ${operation} was killed from outside, perhaps for want of memory`);
    case 'exited':
      return helmFailure(
        exit.stderr,
        redact,
        `helm ${operation} failed with code ${String(exit.code)} and said nothing`,
      );
  }
}

function cancelled(control: OperationControl): HelmError {
  return new HelmError('Cancelled', 'the operation was cancelled', { cause: control.signal.reason });
}
