/**
 * The room `drift`: what a release's objects should be, what they are, and how they are put back. A newcomer reads
 * `types.ts` (the contract), then `inventory.ts`, `cluster-tracker.ts`, `verifier.ts` and `corrector.ts`.
 */
export type * from './types.ts';
export { buildInventory, hasHelmLabel, HELM_SELECTOR, objectKey, objectName } from './inventory.ts';
export type { InventorySource } from './inventory.ts';
export { compileRules } from './rules.ts';
export { compare } from './compare.ts';
export type { CompareOptions, Difference } from './compare.ts';
export { describeFields, isMasked, MASK } from './describe.ts';
export type { ReportedField } from './describe.ts';
export { matchesPattern, parsePointer, pointerOf, valueAt } from './pointer.ts';
export { ClusterTracker } from './cluster-tracker.ts';
export type { ClusterTrackerDependencies, ClusterTrackerOptions } from './cluster-tracker.ts';
export type { Settled, Stirred, TrackOptions } from './tracked-types.ts';
export { markOf } from './mark.ts';
export type { MarkScope } from './mark.ts';
export { verifyObject } from './verifier.ts';
export type { VerifyOptions } from './verifier.ts';
export { correctableFields, correctObject } from './corrector.ts';
export type { Correctable, CorrectOptions } from './corrector.ts';
export { OPT_OUT_ANNOTATION, OPT_OUT_VALUE } from './set-apart.ts';
export { DriftError, ObjectMovingError } from './errors.ts';
export type { DriftErrorCode, DriftHandling } from './errors.ts';
export { Convergence } from './convergence.ts';
export type { ConvergenceOptions, Turn } from './convergence.ts';
