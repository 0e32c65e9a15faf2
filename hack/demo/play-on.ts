import { LABEL, NAMESPACE } from './charts.ts';
import { missingFolders } from './programs.ts';
import type { Stage } from './stage.ts';

/** A command for the user to go on with. */
export interface Command {
  about: string;
  line: string;
  /** Whether it ends by itself, and `--once` therefore tries it. */
  ends: boolean;
}

/** What must be exported before the commands work. */
export function exports(stage: Stage): string[] {
  const folders = missingFolders(stage.programs);
  return [
    `export KUBECONFIG=${stage.folder.shown('management.kubeconfig')}`,
    ...(folders.length === 0 ? [] : [`export PATH=${folders.join(':')}:$PATH`]),
  ];
}

/** Commands that show or change something, in an order in which each works. */
export function playOn(stage: Stage): Command[] {
  const { folder } = stage;
  const [first] = stage.members;
  const last = stage.members.at(-1);
  if (!first || !last) return [];
  const kubeconfig = folder.shown(`${first.name}.kubeconfig`);
  return [
    { about: 'what there is', line: `kubectl get clusters,hcp,hrp -n ${NAMESPACE}`, ends: true },
    {
      about: 'what differs now from what the charts say, and who changed it (exit code 1 when something does)',
      line: `${folder.shown('../bin/capstan')} drift -n ${NAMESPACE}`,
      ends: true,
    },
    {
      about: `change something by hand on ${first.name}, and see what becomes of it`,
      line: `kubectl --kubeconfig ${kubeconfig} scale deployment greeting -n greeting --replicas 5`,
      ends: true,
    },
    { about: 'watch the releases', line: `kubectl get hrp -n ${NAMESPACE} -w`, ends: false },
    {
      about: `give ${last.name} its label back: the chart is installed again`,
      line: `kubectl label cluster ${last.name} -n ${NAMESPACE} ${LABEL.key}=${LABEL.value}`,
      ends: true,
    },
    {
      about: 'other values: edit the template and apply it',
      line: `kubectl apply -f ${folder.shown('greeting.yaml')}`,
      ends: true,
    },
    {
      about: 'a newer chart',
      line: `kubectl patch hcp greeting -n ${NAMESPACE} --type merge -p '{"spec":{"version":"1.1.0"}}'`,
      ends: true,
    },
    {
      about: `what ${first.name} got`,
      line: `kubectl --kubeconfig ${kubeconfig} get configmaps,services,deployments,limitranges -A`,
      ends: true,
    },
    { about: 'what Helm says there', line: `helm list -A --kubeconfig ${kubeconfig}`, ends: true },
    { about: 'what happened so far', line: `kubectl get events -n ${NAMESPACE} --sort-by=.lastTimestamp`, ends: true },
    { about: "the manager's log", line: `tail -f ${folder.shown('manager.log')}`, ends: false },
    {
      about: 'the end of a HelmChartProxy: every release is uninstalled',
      line: `kubectl delete hcp greeting -n ${NAMESPACE}`,
      ends: true,
    },
  ];
}
