/** The strategy Continuous: a release follows its object for as long as both live. */
import type { Strategy } from '../types.ts';

/**
 * Installs, upgrades, and uninstalls with the selector or the object (caaph §1.6). Bound under its name and meant by an
 * empty `reconcileStrategy`.
 */
export const continuousStrategy: Strategy = {
  name: 'Continuous',
  handedOff: () => false,
  reconcile: (context) => context.installOrUpgrade(),
  detectsDrift: true,
  uninstallsOnDelete: true,
  followsSelector: true,
};
