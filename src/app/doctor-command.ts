import { checkClusters } from './doctor/clusters.ts';
import { reportOf, doctorExitCode } from './doctor/finding.ts';
import type { Finding } from './doctor/finding.ts';
import { checkFleet } from './doctor/fleet.ts';
import { checkHelm } from './doctor/helm.ts';
import { checkApiServer, checkClusterApi, checkCrds, checkLeader, checkOtherController } from './doctor/management.ts';
import { checkPermissions } from './doctor/permissions.ts';
import { doctorText } from './doctor/print.ts';
import { explain } from './drift/explain.ts';
import type { Terminal } from './drift/terminal.ts';
import { readFleet } from './inspect/objects.ts';
import type { DoctorOptions } from './inspect/options.ts';
import { inspect, printAs } from './inspect/run.ts';
import type { Inspection } from './inspect/run.ts';
import type { Environment } from './options.ts';

/**
 * Looks at everything that a manager needs, and says what is wrong and what to do. Reads, and asks for rights; writes
 * nothing. Resolves with the exit code: 0 all is well, 1 something is not, 2 trouble. Who calls: main; `signal` ends it early.
 */
export async function runDoctor(
  options: DoctorOptions,
  env: Environment,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const command = { name: 'doctor', options, env, terminal, signal };
  return inspect(command, async (inspection) => {
    const findings = await lookAtAll(inspection, options, env);
    const report = reportOf(findings);
    printAs(command, report, (palette) => doctorText(report, palette));
    return doctorExitCode(report);
  });
}

async function lookAtAll(inspection: Inspection, options: DoctorOptions, env: Environment): Promise<Finding[]> {
  const { client, call } = inspection;
  // Whatever else there is, it is asked of this server.
  const server = await checkApiServer(inspection);
  const rest = await Promise.all([
    checkCrds(inspection),
    checkClusterApi(inspection),
    checkPermissions(client, options, call),
    checkHelm(options.helm, env.path, call.signal),
    checkLeader(inspection, options.leaseName),
    checkOtherController(inspection),
    lookAtFleet(inspection, options),
  ]);
  return [...server, ...rest.flat()];
}

async function lookAtFleet(inspection: Inspection, options: DoctorOptions): Promise<Finding[]> {
  const { client, namespace, call } = inspection;
  try {
    const fleet = await readFleet(client, namespace, call);
    return [...checkFleet(fleet, Date.now()), ...(await checkClusters(inspection, fleet, options))];
  } catch (error) {
    call.signal.throwIfAborted();
    return [{ check: 'release', level: 'skip', subject: '', message: explain(error), advice: '' }];
  }
}
