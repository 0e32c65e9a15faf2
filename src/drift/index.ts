/**
 * The room `drift`: what a release's objects should be, what they are, and how they are put back. A newcomer reads
 * `types.ts` (the contract), then `inventory.ts`, `cluster-tracker.ts`, `verifier.ts` and `corrector.ts`.
 */
export type * from './types.ts';
export { buildInventory, HELM_SELECTOR, objectKey, objectName } from './inventory.ts';
export type { InventorySource } from './inventory.ts';
export { compileRules } from './rules.ts';
export { compare } from './compare.ts';
export type { CompareOptions, Difference } from './compare.ts';
export { describeFields, isMasked, MASK } from './describe.ts';
export type { ReportedField } from './describe.ts';
export { matchesPattern, parsePointer, pointerOf, valueAt } from './pointer.ts';
export { ManagedFields } from './managed-fields.ts';
export { markOf } from './mark.ts';
export type { MarkScope } from './mark.ts';
export { verifyObject } from './verifier.ts';
export { correctObject } from './corrector.ts';
