import type { Environment } from '../support/index.ts';

/** The two major versions of Helm that Capstan drives, and how a test gets each one's binary. */
export const HELM_VERSIONS = [
  { name: 'helm 4', binary: (environment: Environment): string => environment.binaries.helm },
  { name: 'helm 3', binary: (environment: Environment): string => environment.binaries.helm3 },
] as const;
