/**
 * Conditions as Cluster API's own utilities write them (caaph §1.8), because dashboards and `kubectl wait` lines depend on
 * their order, reasons and messages. What differs: every list is sorted and bounded (caaph W4, W5).
 */
import type { Condition } from '../api/index.ts';

export type ConditionStatus = Condition['status'];

/** What a caller says of a condition; the rest is bookkeeping. */
export interface ConditionInput {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

/** Result of an aggregation: a condition without its type. */
export type Summary = Omit<ConditionInput, 'type'>;

/** One object and its condition; undefined: not reported yet. */
export interface ConditionSource {
  readonly name: string;
  readonly condition?: Condition;
}

export const READY = 'Ready';
/** Whether a release's objects are as its manifest has them; no part of Ready, and there only while drift is looked for. */
export const RELEASE_IN_SYNC = 'ReleaseInSync';

export const ISSUES_REPORTED = 'IssuesReported';
export const UNKNOWN_REPORTED = 'UnknownReported';
export const INFO_REPORTED = 'InfoReported';
export const NOT_YET_REPORTED = 'NotYetReported';

/** Distinct messages in an aggregate, and names in one message: as Cluster API. */
const MAX_MESSAGES = 3;
const MAX_NAMES = 3;
/** Characters of one source's message. The CRD refuses a condition beyond 32,768: three such and the names stay far below. */
const MAX_SOURCE_MESSAGE = 2048;
/** Characters of any condition's message. */
const MAX_MESSAGE = 16_384;

/** The condition of a type, or undefined. */
export function getCondition(list: readonly Condition[] | undefined, type: string): Condition | undefined {
  return list?.find((condition) => condition.type === type);
}

/**
 * The list with one condition set. lastTransitionTime (whole seconds) moves only with the status; Ready stands first, then
 * the types in alphabetical order. When nothing changes the same array comes back, so callers may compare by identity.
 */
export function setCondition(
  list: readonly Condition[] | undefined,
  input: ConditionInput,
  generation: number | undefined,
  now: Date = new Date(),
): Condition[] {
  const existing = getCondition(list, input.type);
  const message = bounded(input.message, MAX_MESSAGE);
  if (list !== undefined && existing !== undefined && same(existing, input, message, generation))
    return list as Condition[];
  const next: Condition = {
    type: input.type,
    status: input.status,
    reason: input.reason,
    message,
    lastTransitionTime:
      existing?.status === input.status && existing.lastTransitionTime !== ''
        ? existing.lastTransitionTime
        : wholeSeconds(now),
  };
  if (generation !== undefined) next.observedGeneration = generation;
  return [...(list ?? []).filter((condition) => condition.type !== input.type), next].sort(byType);
}

/** The list without the conditions of the given types; the same array when none is there. */
export function removeConditions(list: readonly Condition[] | undefined, types: readonly string[]): Condition[] {
  const given = (list ?? []) as Condition[];
  return given.some((condition) => types.includes(condition.type))
    ? given.filter((condition) => !types.includes(condition.type))
    : given;
}

/**
 * The list with Ready computed from the conditions of `types`: any False → False, else any Unknown or missing → Unknown,
 * else True. The reason is always one of the three generic ones.
 */
export function summarize(
  list: readonly Condition[] | undefined,
  types: readonly string[],
  generation: number | undefined,
  now: Date = new Date(),
): Condition[] {
  const sources = types.map(
    (type): ConditionInput =>
      getCondition(list, type) ?? {
        type,
        status: 'Unknown',
        reason: NOT_YET_REPORTED,
        message: 'Condition not yet reported',
      },
  );
  const status = worst(sources);
  const lines = sources
    .filter((source) => (source.status === 'True' ? status === 'True' && source.message !== '' : true))
    .map((source) => `* ${source.type}:${indented(source.message === '' ? source.reason : source.message)}`);
  const message = lines.join('\n');
  return setCondition(list, { type: READY, status, reason: genericReason(status), message }, generation, now);
}

/**
 * One condition over many objects of a kind, e.g. HelmReleaseProxiesReady over every HelmReleaseProxy's Ready. Sources are
 * sorted by name, so equal inputs in any order give the same text; at most three distinct messages and a few names stand
 * in it. No objects: True, reason Ready.
 */
export function aggregate(items: readonly ConditionSource[], kind: string): Summary {
  if (items.length === 0) return { status: 'True', reason: READY, message: '' };
  const sources = [...items].sort((a, b) => compare(a.name, b.name)).map(asSource);
  const status = worst(sources);
  const lines: string[] = [];
  surface(lines, sources, { status: 'False', kind, rest: 'with other issues', keepEmpty: true });
  surface(lines, sources, { status: 'Unknown', kind, rest: 'with status unknown', keepEmpty: true });
  if (status === 'True') {
    surface(lines, sources, { status: 'True', kind, rest: 'with additional info', keepEmpty: false });
  }
  const names = nameList(sources.map((source) => `${kind}/${source.name}`));
  return { status, reason: genericReason(status), message: `${lines.join('\n')} (sources: ${names})` };
}

/** At most `max` characters; what was cut is said. */
export function bounded(text: string, max: number): string {
  if (text.length <= max) return text;
  const mark = '… (cut)';
  return `${text.slice(0, max - mark.length)}${mark}`;
}

/** "a, b, c, ... (7 more)". The order is the caller's. */
export function nameList(names: readonly string[], max = MAX_NAMES): string {
  const shown = names.slice(0, max).join(', ');
  return names.length > max ? `${shown}, ... (${names.length - max} more)` : shown;
}

interface NamedSource {
  readonly name: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

function asSource(item: ConditionSource): NamedSource {
  const { name, condition } = item;
  return condition === undefined
    ? { name, status: 'Unknown', reason: NOT_YET_REPORTED, message: 'Condition Ready not yet reported' }
    : {
        name,
        status: condition.status,
        reason: condition.reason,
        message: bounded(condition.message, MAX_SOURCE_MESSAGE),
      };
}

/** Appends the messages of one status, equal ones together: those that most objects share first. `lines` holds what was said already. */
function surface(
  lines: string[],
  sources: readonly NamedSource[],
  how: { status: ConditionStatus; kind: string; rest: string; keepEmpty: boolean },
): void {
  const groups = new Map<string, string[]>();
  for (const source of sources) {
    if (source.status !== how.status) continue;
    const text = source.message !== '' ? source.message : how.keepEmpty ? source.reason : '';
    if (text === '') continue;
    const names = groups.get(text);
    if (names === undefined) groups.set(text, [source.name]);
    else names.push(source.name);
  }
  const ordered = [...groups].sort(([textA, a], [textB, b]) => b.length - a.length || compare(textA, textB));
  const room = Math.max(0, MAX_MESSAGES - lines.length);
  for (const [text, names] of ordered.slice(0, room)) {
    lines.push(`* ${counted(how.kind, names.length)} ${nameList(names)}:${indented(text)}`);
  }
  const others = ordered.slice(room).reduce((sum, [, names]) => sum + names.length, 0);
  if (others > 0) lines.push(`And ${others} ${counted(how.kind, others)} ${how.rest}`);
}

function counted(kind: string, count: number): string {
  if (count === 1) return kind;
  return kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`;
}

function worst(sources: readonly { status: ConditionStatus }[]): ConditionStatus {
  if (sources.some((source) => source.status === 'False')) return 'False';
  return sources.some((source) => source.status === 'Unknown') ? 'Unknown' : 'True';
}

function genericReason(status: ConditionStatus): string {
  if (status === 'False') return ISSUES_REPORTED;
  return status === 'Unknown' ? UNKNOWN_REPORTED : INFO_REPORTED;
}

/** A message as it stands behind a bullet: several lines, or one that is a bullet itself, go below it as sub-bullets. */
function indented(message: string): string {
  const lines = message.split('\n');
  if (lines.length === 1 && !message.startsWith('* ')) return ` ${message}`;
  const nested = (line: string): boolean => line.startsWith('*') || line.startsWith('  ');
  const mixed = lines.some((line) => !nested(line));
  return lines.map((line) => `\n${mixed ? (nested(line) ? '    ' : '  * ') : '  '}${line}`).join('');
}

function same(a: Condition, b: ConditionInput, message: string, generation: number | undefined): boolean {
  return a.status === b.status && a.reason === b.reason && a.message === message && a.observedGeneration === generation;
}

function byType(a: Condition, b: Condition): number {
  if (a.type === READY || b.type === READY) return a.type === b.type ? 0 : a.type === READY ? -1 : 1;
  return compare(a.type, b.type);
}

/** By code units: the same on every machine, whatever its locale. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function wholeSeconds(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
