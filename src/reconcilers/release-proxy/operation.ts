/** What a decision means for Helm. */
import { isHelmError } from '../../helm/index.ts';
import type {
  DeployRequest,
  HelmEngine,
  HelmTarget,
  OperationControl,
  ReleaseReader,
  ReleaseSummary,
} from '../../helm/index.ts';
import type { Decision } from './decide.ts';

/** A decision upon which Helm runs. */
export type Operating = Exclude<Decision, { action: 'none' | 'wait' }>;

export interface OperationParts {
  readonly engine: HelmEngine;
  readonly reader: ReleaseReader;
  readonly target: HelmTarget;
  readonly control: OperationControl;
  /** Told when a record was marked failed, before Helm goes on. */
  readonly recovered: (release: ReleaseSummary, why: string) => void;
}

/** What an operation is about. */
export interface OperationSubject {
  /** The newest record before it. */
  readonly observed: ReleaseSummary | undefined;
  readonly request: DeployRequest;
}

/** Does it. Rejects with what the engine or the reader rejects with. */
export async function execute(parts: OperationParts, decision: Operating, subject: OperationSubject): Promise<void> {
  switch (decision.action) {
    case 'install':
      return parts.engine.install(parts.target, subject.request, parts.control);
    case 'upgrade':
      return upgrade(parts, subject);
    case 'recover':
      if (subject.observed !== undefined) await recover(parts, subject.observed, decision.reason);
      return upgrade(parts, subject);
    case 'reinstall':
      return reinstall(parts, subject);
  }
}

async function recover(parts: OperationParts, observed: ReleaseSummary, why: string): Promise<void> {
  await parts.reader.markFailed(observed, why, parts.control);
  parts.recovered(observed, why);
}

async function upgrade(parts: OperationParts, { observed, request }: OperationSubject): Promise<void> {
  const serverSide = observed?.applyMethod === 'server';
  try {
    await parts.engine.upgrade(parts.target, { ...request, serverSide }, parts.control);
  } catch (error) {
    // Nothing of it is deployed and Helm will not build on what is there: begin anew.
    if (!isHelmError(error, 'NoDeployedRelease')) throw error;
    await replace(parts, request);
  }
}

/** Ends an uninstall that was broken off, then installs over what it left. */
async function reinstall(parts: OperationParts, { observed, request }: OperationSubject): Promise<void> {
  const { release, options } = request;
  if (observed?.status === 'uninstalling')
    await parts.engine.uninstall(parts.target, { release, options }, parts.control);
  await replace(parts, request);
}

/** Helm installs under a name that has records only when told so; the history stays, and the revision counts on. */
async function replace(parts: OperationParts, request: DeployRequest): Promise<void> {
  await parts.engine.install(parts.target, { ...request, replace: true }, parts.control);
}
