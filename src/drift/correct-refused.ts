import type { Refusal } from './refusal.ts';
import { refusalOf } from './refusal.ts';
import type { Correction, InventoryObject, LiveObject } from './types.ts';

/** The correction for an error that is the server's refusal; else the error is thrown on. */
export function refused(error: unknown, object: InventoryObject, live?: LiveObject): Correction {
  const refusal = refusalOf(error, object, live);
  if (refusal === undefined) throw error;
  return correctionFor(refusal);
}

export function correctionFor(refusal: Refusal): Correction {
  const { kind, message } = refusal;
  switch (kind) {
    case 'conflict':
      return { outcome: 'conflict' };
    case 'waiting':
      return { outcome: 'waiting', message };
    case 'immutable':
      return { outcome: 'needs-recreation', message };
    default:
      return { outcome: 'refused', message };
  }
}
