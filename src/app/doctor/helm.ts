import { tmpdir } from 'node:os';
import { helmProcessOptions, HelmProcesses, ProcessHelmEngine } from '../../helm/index.ts';
import { createTelemetry, errorText } from '../../telemetry/index.ts';
import { findProgram } from '../find-program.ts';
import { Findings } from './finding.ts';
import type { Finding } from './finding.ts';

const LIMIT_MS = 15_000;
const ADVICE = 'install Helm 3.17 or later (4 is best) where the manager runs, or name its path with --helm';

/** Is there a helm that the manager could run? Looked for on this machine: in a Pod, run this there. */
export async function checkHelm(helm: string, path: string, signal: AbortSignal): Promise<Finding[]> {
  const found = new Findings('helm');
  if (helm === '') return found.all;
  const program = findProgram(helm, path);
  if (program === undefined) {
    found.fail(helm, 'there is no such program that may be run', ADVICE);
    return found.all;
  }
  const telemetry = createTelemetry();
  const engine = new ProcessHelmEngine(
    new HelmProcesses(helmProcessOptions({ helmPath: program, workDir: tmpdir() }), telemetry),
    telemetry,
  );
  try {
    const { full } = await engine.version({ signal, limitMs: LIMIT_MS });
    found.ok(program, `Helm ${full}`);
  } catch (error) {
    found.fail(program, errorText(error), ADVICE);
  } finally {
    await engine.close();
  }
  return found.all;
}
