import type { CallOptions, KubeClient, Resource } from '../kube/index.ts';
import { NotFoundError } from '../kube/index.ts';
import { isAutoscaled, isReplicas, REPLICAS } from './autoscaler.ts';
import type { Difference } from './compare.ts';
import { compare } from './compare.ts';
import { documentFor } from './document.ts';
import { applyDocument, limits } from './dry-run.ts';
import { ObjectMovingError } from './errors.ts';
import { addedFields } from './extras.ts';
import type { Look, Moved } from './look.ts';
import { MOVED } from './look.ts';
import { Owners } from './owners.ts';
import { asidePaths } from './kinds.ts';
import { matchesPattern, pointerOf, valueAt } from './pointer.ts';
import type { Refusal } from './refusal.ts';
import { refusalOf } from './refusal.ts';
import { setApart, takenOut } from './set-apart.ts';
import { isPositional, isWithin, overlap, twinLeaves, twinPath } from './twin.ts';
import type {
  ComparisonPolicy,
  FieldDrift,
  InventoryObject,
  LiveObject,
  Path,
  PathPattern,
  Verdict,
  Verification,
} from './types.ts';

/** How often an object is looked at while somebody writes it: more than two writers in a row take turns for longer than that. */
const MAX_LOOKS = 3;

export interface VerifyOptions extends CallOptions {
  /** The object as it was just read; read anew when absent. */
  readonly live?: LiveObject;
  /** Called for every dry run that is sent. */
  readonly onDryRun?: () => void;
}

/**
 * What one object of a release is, compared with what the manifest wants (DESIGN §5.2). Equal by the structural comparison:
 * no more than one read. Else a server-side-apply dry run of the stored object on the live one decides, as only the server
 * knows what it makes of a value; where it refuses that, the structural comparison holds.
 *
 * Rejects with a KubeError of the connection, with ObjectMoving when the object is written under every look, or with the
 * reason of the signal. `timeoutMs` is of each call.
 */
export async function verifyObject(
  client: KubeClient,
  object: InventoryObject,
  policy: ComparisonPolicy,
  options: VerifyOptions = {},
): Promise<Verification> {
  const { resource } = object;
  if (resource === undefined) return { verdict: { state: 'NotServed' }, notes: [] };
  const call = { ...limits(options), onDryRun: options.onDryRun };
  let given = options.live;
  for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
    const live = given ?? (await read(client, { object, resource, call }));
    given = undefined;
    if (typeof live === 'string') return { verdict: absent(live, object, policy), notes: [] };
    const verification = await judge(lookAt(live, { client, object, resource, policy, call }));
    if (verification !== MOVED) return verification;
  }
  throw new ObjectMovingError(`${object.id.kind} ${object.id.name} is written faster than it can be verified`);
}

async function read(
  client: KubeClient,
  what: { object: InventoryObject; resource: Resource; call: CallOptions },
): Promise<LiveObject | 'Missing' | 'NotServed'> {
  const { namespace, name } = what.object.id;
  try {
    return await client.get<LiveObject>(what.resource, { namespace, name }, limits(what.call));
  } catch (error) {
    if (error instanceof NotFoundError) return error.notServed ? 'NotServed' : 'Missing';
    throw error;
  }
}

/** An object that is taken out may be missing, too. */
function absent(state: 'Missing' | 'NotServed', object: InventoryObject, policy: ComparisonPolicy): Verdict {
  const by = takenOut(object.wanted, policy.ignore.patternsFor(object.id, object.wanted, undefined));
  return by === undefined || state === 'NotServed' ? { state } : { state: 'Excluded', live: undefined, by };
}

/** Rules and owners of one live object. */
export function lookAt(live: LiveObject, of: Omit<Look, 'live' | 'owners' | 'ignore' | 'quantities'>): Look {
  const { object, policy } = of;
  return {
    ...of,
    live,
    owners: new Owners(live, policy.helmManagers),
    ignore: policy.ignore.patternsFor(object.id, object.wanted, live),
    quantities: policy.quantities.patternsFor(object.id, object.wanted, live),
  };
}

async function judge(look: Look): Promise<Verification | Moved> {
  const apart = setApart(look.object, look.live, look.ignore);
  if (apart !== undefined) return { verdict: apart, notes: [] };
  const differences = await structuralDifferences(look);
  const tried = differences.list.length === 0 ? NOTHING : await tryOut(look, differences);
  if (tried === MOVED) return MOVED;
  const added = await addedFields(look);
  if (added === MOVED) return MOVED;
  const fields = [
    ...tried.fields,
    ...added.filter(({ path }) => !tried.fields.some((field) => overlap(field.path, path))),
  ];
  const { live } = look;
  const settled = settledPaths(look);
  const watch = look.owners.watch(settled);
  if (fields.length === 0) {
    const unowned = look.owners.isUnowned(settled) && { unowned: true as const };
    return { verdict: { state: 'InSync', live, watch, ...unowned }, notes: tried.notes };
  }
  return { verdict: { state: 'Modified', live, watch, fields, applicable: tried.applicable }, notes: tried.notes };
}

/** What the manifest sets and no rule ignores, as paths into the live object. */
function settledPaths(look: Look): Path[] {
  return twinLeaves(look.object.wanted, look.live, { from: [], to: [] })
    .filter(({ from }) => !look.ignore.some((pattern) => matchesPattern(from, pattern)))
    .map(({ to }) => to);
}

/** Differences of the wanted and the live object. */
interface Structural {
  readonly list: readonly Difference[];
  /** An autoscaler keeps the replicas: they are left alone by the dry run, too. */
  readonly autoscaled: boolean;
}

/** Differences by structure, less the replicas that an autoscaler keeps. Used by verifier and corrector alike. */
export async function structuralDifferences(look: Look): Promise<Structural> {
  const list = differencesOf(look);
  const replicas = list.find(({ path, wanted }) => isReplicas(path, wanted));
  if (replicas === undefined) return { list, autoscaled: false };
  const autoscaled = await isAutoscaled(look.client, look.object, look.live, limits(look.call));
  return autoscaled ? { list: list.filter((difference) => difference !== replicas), autoscaled } : { list, autoscaled };
}

/** The structural comparison alone: no request. */
export function differencesOf(look: Look): readonly Difference[] {
  const { ignore, quantities } = look;
  return compare(look.object.wanted, look.live, { id: look.object.id, nulls: [], ignore, quantities });
}

interface Tried {
  readonly fields: readonly FieldDrift[];
  readonly applicable: boolean;
  readonly notes: readonly string[];
}

const NOTHING: Tried = { fields: [], applicable: true, notes: [] };

async function tryOut(look: Look, structural: Structural): Promise<Tried | Moved> {
  const document = documentFor(look.object.wanted, look.live, {
    patterns: look.ignore,
    paths: [...(structural.autoscaled ? [REPLICAS] : []), ...asidePaths(look.object.id, look.object.wanted, look.live)],
    applied: (path) => look.owners.isApplied(path),
  });
  const { resource, live, call } = look;
  try {
    const { result, unknown } = await applyDocument(look.client, {
      resource,
      document,
      onto: live,
      dryRun: true,
      ...call,
    });
    const notes = unknown.map((path) => `the server knows no field ${pointerOf(path)} of the manifest`);
    return { fields: fieldsOfDryRun(look, structural, result), applicable: true, notes };
  } catch (error) {
    const refusal = refusalOf(error, look.object, live);
    if (refusal === undefined) throw error;
    if (refusal.kind === 'conflict' || refusal.kind === 'waiting') return MOVED;
    const list = structural.list.filter((difference) => !isHelmsOwnWrite(look, difference));
    const fields = list.map((difference) => withAuthor(look, difference));
    return { fields, applicable: false, notes: [noteOf(refusal)] };
  }
}

/**
 * What the dry run would change. Only where the manifest and the live object differ, or where Helm had applied something:
 * what a webhook adds to every write (a time, a count) would differ for ever (drift.md §8, scenario 11).
 */
function fieldsOfDryRun(look: Look, structural: Structural, result: LiveObject): FieldDrift[] {
  const { live, object } = look;
  const { wanted } = object;
  const ignore: PathPattern[] = [...look.ignore, ...(structural.autoscaled ? [[...REPLICAS]] : [])];
  const options = { id: object.id, nulls: [], ignore, quantities: look.quantities, wantedIsLive: true };
  const expected = structural.list.map((difference) => ({ difference, path: inWanted(difference, live, wanted) }));
  const fields = compare(result, live, options).flatMap((difference) => {
    const whole = expected.find(({ difference: other }) => isOfWhole(difference, other));
    if (whole !== undefined) return [withAuthor(look, whole.difference)];
    const path = inWanted(difference, difference.change === 'removed' ? result : live, wanted);
    const ours = difference.change === 'added' && look.owners.isApplied(difference.path);
    if (!ours && !expected.some((other) => overlap(path, other.path))) return [];
    return [withAuthor(look, asInManifest(difference, path, wanted))];
  });
  // Several parts of one whole are told once.
  return [...new Map(fields.map((field) => [`${field.change} ${pointerOf(field.path)}`, field])).values()];
}

/**
 * Is it a part of something that the manifest sets as a whole? Then it was not just added: an element in a list that the
 * manifest has empty, or a second one of a name that it has once, is the list being another one.
 */
function isOfWhole(difference: Difference, expected: Difference): boolean {
  return difference.change === 'added' && expected.change === 'changed' && isWithin(difference.path, expected.path);
}

/** Where in the wanted object the difference is; what the manifest does not have keeps its own path. */
function inWanted(difference: Difference, from: LiveObject, wanted: InventoryObject['wanted']): Path {
  return twinPath(from, wanted, difference.path) ?? difference.path;
}

/** People know the manifest's value, not what a server's defaults make of it. */
function asInManifest(difference: Difference, path: Path, wanted: InventoryObject['wanted']): Difference {
  const value = valueAt(wanted, path);
  if (value === undefined || difference.change === 'added') return difference;
  return { ...difference, path: difference.change === 'removed' ? path : difference.path, wanted: value };
}

/** A removed field has no author, and none is guessed. */
function withAuthor(look: Look, difference: Difference): FieldDrift {
  const { change, path, wanted, live } = difference;
  const author = change === 'removed' ? undefined : look.owners.authorOf(path);
  return { change, path, wanted, live, ...(author !== undefined && { author }) };
}

/**
 * Without a dry run it cannot be known what a webhook makes of Helm's write (an image by its digest, say). But its changes
 * are booked on the writer, so a value that is `helm`'s own, and nobody's since, is what came of Helm's own write (scenario 11).
 */
function isHelmsOwnWrite(look: Look, difference: Difference): boolean {
  if (difference.change !== 'changed' || !look.owners.isHelmsAlone(difference.path)) return false;
  // Where an element was taken out of a list that goes by position, its neighbours differ, and nobody wrote them.
  return !isPositional(look.live, look.object.wanted, difference.path);
}

/** Why there was no dry run; the server's own words can quote values, so only kind and fields. */
function noteOf(refusal: Refusal): string {
  const fields = refusal.kind === 'invalid' ? ` (${refusal.fields.slice(0, 3).join(', ')})` : '';
  return `compared by structure: the server refused a dry run, ${refusal.kind}${fields}`;
}
