export type * from './conditions.ts';
export type * from './types.ts';
export * from './names.ts';
