import type { KubeClient, Resource } from '../kube/index.ts';
import { asidePaths } from './kinds.ts';
import { correctByReplacing } from './correct-replace.ts';
import { documentFor } from './document.ts';
import { applyDocument, FIELD_MANAGER, limits } from './dry-run.ts';
import { isNulled, removePaths } from './extras.ts';
import type { Look } from './look.ts';
import { Owners } from './owners.ts';
import { correctionFor, refused } from './correct-refused.ts';
import { refusalOf } from './refusal.ts';
import { valueAt } from './pointer.ts';
import { overlap, twinPath } from './twin.ts';
import type { ComparisonPolicy, Correction, FieldDrift, InventoryObject, LiveObject, Path, Verdict } from './types.ts';
import { differencesOf, lookAt } from './verifier.ts';

/** Verdicts that a correction can do something about. */
export type Correctable = Extract<Verdict, { state: 'Modified' | 'Missing' }>;
type Modified = Extract<Verdict, { state: 'Modified' }>;

export interface CorrectOptions {
  readonly policy: ComparisonPolicy;
  /** Paths of differing fields, as the verdict has them, that are to stay as they are (stopped ones), beside the ignored ones. */
  readonly skip?: readonly Path[];
  readonly signal?: AbortSignal;
  /** Milliseconds, of each call. */
  readonly timeoutMs?: number;
  /** Called for every dry run that is sent. */
  readonly onDryRun?: () => void;
}

/**
 * Puts one object back as Helm's own field manager, with no Helm revision (DESIGN §5.4): what the verdict found to differ and
 * nothing else, so that what a rule ignores, an autoscaler keeps or a webhook made stays as it is. Written on the verified
 * version only: whoever wrote meanwhile wins (`conflict`), and is looked at first.
 *
 * Values come from the manifest (`object.wanted`), never from a report. Rejects with a KubeError of the connection, or with the
 * reason of the signal.
 */
export async function correctObject(
  client: KubeClient,
  object: InventoryObject,
  verdict: Correctable,
  options: CorrectOptions,
): Promise<Correction> {
  const { resource } = object;
  if (resource === undefined) return { outcome: 'waiting', message: 'the cluster does not serve this kind' };
  const call = { ...limits(options), onDryRun: options.onDryRun };
  const { policy, skip = [] } = options;
  if (verdict.state === 'Missing') return create({ client, object, resource, call });
  const look = lookAt(verdict.live, { client, object, resource, policy, call });
  const correctable = correctableFields(object, verdict, policy);
  const fields = correctable.filter((field) => !isSkipped(field, skip));
  if (fields.length === 0) return { outcome: 'refused', message: 'nothing here is to be corrected' };
  return correctFields(
    look,
    fields,
    correctable.filter((field) => isSkipped(field, skip)),
  );
}

/**
 * The fields of a verdict that a correction puts right. With `extraFields: Report`, fields that were added by hand are only
 * told; that an apply of Helm's would take them away, or the manifest says null, makes them corrected in every mode.
 */
export function correctableFields(
  object: InventoryObject,
  verdict: Modified,
  policy: ComparisonPolicy,
): readonly FieldDrift[] {
  if (policy.extraFields === 'Remove') return verdict.fields;
  const { live } = verdict;
  const owners = new Owners(live, policy.helmManagers);
  return verdict.fields.filter(
    ({ change, path }) => change !== 'added' || owners.isApplied(path) || isNulled({ object, live }, path),
  );
}

interface Making {
  readonly client: KubeClient;
  readonly object: InventoryObject;
  readonly resource: Resource;
  readonly call: Look['call'];
}

/** By server-side apply, that a later one owns and removes its fields; by a plain create what cannot be applied (scenario 7). */
async function create(making: Making): Promise<Correction> {
  const { client, object, resource, call } = making;
  try {
    const { result } = await applyDocument(client, { resource, document: object.wanted, onto: 'nothing', ...call });
    return { outcome: 'corrected', live: result, created: true };
  } catch (error) {
    const refusal = refusalOf(error, object);
    if (refusal === undefined) throw error;
    return refusal.kind === 'not-appliable' ? createPlainly(making) : correctionFor(refusal);
  }
}

async function createPlainly(making: Making): Promise<Correction> {
  const { client, object, resource, call } = making;
  try {
    const options = { fieldManager: FIELD_MANAGER, ...limits(call) };
    const live = await client.create<LiveObject>(resource, structuredClone(object.wanted) as LiveObject, options);
    return { outcome: 'corrected', live, created: true };
  } catch (error) {
    return refused(error, object);
  }
}

async function correctFields(
  look: Look,
  fields: readonly FieldDrift[],
  skipped: readonly FieldDrift[],
): Promise<Correction> {
  const added = fields.filter(({ change, path }) => change === 'added' && !look.owners.isApplied(path));
  if (added.length === fields.length) return takeAway(look, look.live, added);
  const untouched = untouchedPaths(look, fields, skipped);
  const document = documentFor(look.object.wanted, look.live, {
    patterns: look.ignore,
    paths: untouched,
    applied: (path) => look.owners.isApplied(path),
  });
  const { resource, live, call } = look;
  try {
    const { result } = await applyDocument(look.client, { resource, document, onto: live, ...call });
    return await takeAway(look, result, added);
  } catch (error) {
    const refusal = refusalOf(error, look.object, live);
    if (refusal === undefined) throw error;
    if (refusal.kind !== 'not-appliable' && refusal.kind !== 'invalid') return correctionFor(refusal);
    return correctByReplacing(look, { fields, untouched, refusal });
  }
}

/** What differs by structure and is no drift, or is skipped: paths into the wanted object. */
function untouchedPaths(look: Look, fields: readonly FieldDrift[], skipped: readonly FieldDrift[]): Path[] {
  const { object, live } = look;
  const frame = (field: Pick<FieldDrift, 'change' | 'path'>): Path =>
    field.change === 'removed' ? field.path : (twinPath(live, object.wanted, field.path) ?? field.path);
  const corrected = fields.map(frame);
  return [...[...differencesOf(look), ...skipped].map(frame), ...asidePaths(object.id, object.wanted, live)].filter(
    (path) => !corrected.some((other) => overlap(path, other)),
  );
}

/** The second write, of fields that an apply does not take away since they were never Helm's. */
async function takeAway(look: Look, live: LiveObject, added: readonly FieldDrift[]): Promise<Correction> {
  const paths = added.flatMap(({ path }) => {
    const twin = twinPath(look.live, live, path);
    return twin === undefined || valueAt(live, twin) === undefined ? [] : [twin];
  });
  if (paths.length === 0) return { outcome: 'corrected', live, created: false };
  try {
    const result = await removePaths(look, live, { paths });
    return { outcome: 'corrected', live: result, created: false };
  } catch (error) {
    return refused(error, look.object, live);
  }
}

function isSkipped(field: FieldDrift, skip: readonly Path[]): boolean {
  return skip.some((path) => path.length === field.path.length && overlap(path, field.path));
}
