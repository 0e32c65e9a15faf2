/** `ms` ± `fraction` of it, milliseconds: keeps the periodic work of many clusters from falling into step. */
export function jittered(ms: number, fraction: number, random: () => number = Math.random): number {
  return Math.round(ms * (1 + fraction * (2 * random() - 1)));
}
