/**
 * The contract of the room `drift`: what a release's objects should be, what they are, and how they are put back. It
 * knows one API server (`kube`) and nothing of our CRDs, of queues or of Helm's storage. Read next: `inventory.ts` (what
 * should be), `cluster-tracker.ts` (what stirred), `verifier.ts` (what differs), `corrector.ts` (putting back).
 */
import type { KubeObject, Resource } from '../kube/index.ts';

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue;
}

/** A way into an object: keys of maps and indexes of lists. `pointerOf` (pointer.ts) gives the JSON pointer (RFC 6901). */
export type Path = readonly (string | number)[];

/** Which object. Two ids are of the same object when group, kind, namespace and name are equal: the version is only how to ask. */
export interface ObjectId {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Absent on cluster-scoped objects. */
  readonly namespace?: string;
  readonly name: string;
}

/** One object that a release should have, as Helm applied it. */
export interface InventoryObject {
  readonly id: ObjectId;
  /** Where it is served; undefined while the cluster does not serve its kind. */
  readonly resource: Resource | undefined;
  /**
   * The stored manifest's object with its namespace and with the label and annotations that Helm adds, without nulls,
   * `status`, and what only a server sets (creationTimestamp, resourceVersion, uid, generation, managedFields);
   * a Secret's `stringData` is in `data`. Frozen by agreement: never change it.
   */
  readonly wanted: JsonObject;
  /** Where the manifest has an explicit null: the chart wants nothing there. */
  readonly nulls: readonly Path[];
  /** Position in Helm's install order: what has a lower one is put back first. */
  readonly order: number;
  /** From the chart's crds/: without Helm's label and annotations; watched without the label selector. */
  readonly fromCrds: boolean;
}

export interface Inventory {
  /** The release's own namespace and name, for the annotations and for telling a foreign owner. */
  readonly release: { readonly namespace: string; readonly name: string };
  readonly revision: number;
  /** In install order. Every object once: of duplicates the last one holds, as in Helm. */
  readonly objects: readonly InventoryObject[];
  /** What in the manifest is no object (no kind, no name), for people. Normally empty. */
  readonly problems: readonly string[];
}

/** `Ignore`: only fields that the manifest sets. `Report`: fields, too, that somebody added by hand. `Remove`: and these are taken away. */
export type ExtraFields = 'Ignore' | 'Report' | 'Remove';

/** Which objects a rule is for; absent or '' matches all. All but the selectors are RE2 patterns that must match the whole text (as Flux). */
export interface RuleTarget {
  readonly group?: string;
  readonly version?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly annotationSelector?: string;
}

/** JSON pointers, '' for the whole object; a segment `*` stands for every element or key. Holds for comparison and correction. */
export interface PathRule {
  readonly paths: readonly string[];
  readonly target?: RuleTarget;
}

/** How to compare: from the user's spec, compiled once. */
export interface ComparisonPolicy {
  readonly extraFields: ExtraFields;
  readonly ignore: CompiledRules;
  /** Paths whose texts are quantities (1000m is 1), beside those that are known (requests, limits …). */
  readonly quantities: CompiledRules;
  /** Field managers that are Helm: `helm`, `manager` (CAAPH), and the base name of the binary. */
  readonly helmManagers: ReadonlySet<string>;
}

/** Rules as `compileRules` (rules.ts) makes them. */
export interface CompiledRules {
  /** What is wrong with the rules, one text per bad rule, naming rule and field (`ignore[1].paths[0]: …`); bad ones are left out. */
  readonly problems: readonly string[];
  /** Patterns of paths that hold for an object (by its id, and by labels and annotations wanted or live). */
  patternsFor(id: ObjectId, wanted: JsonObject, live: JsonObject | undefined): readonly PathPattern[];
  /** One text per rule whose target matches none of these objects. */
  unmatched(objects: readonly InventoryObject[]): readonly string[];
}

/** A parsed JSON pointer; '*' is any segment. [] is the whole object. */
export type PathPattern = readonly string[];

/** Who wrote a field, as managedFields prove it. */
export interface Author {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  /** RFC 3339, whole seconds; absent where the server has none. */
  readonly time?: string;
  readonly subresource?: string;
}

/** One field that differs. Values are as they are, Secrets' too: only `describe.ts` (masked, bounded) makes texts of them. */
export interface FieldDrift {
  /** `changed`: another value. `removed`: the manifest sets it and it is gone. `added`: somebody added it (extraFields, or an explicit null in the manifest). */
  readonly change: 'changed' | 'removed' | 'added';
  /** Into the live object; for `removed`, into the wanted one. */
  readonly path: Path;
  readonly wanted: JsonValue | undefined;
  readonly live: JsonValue | undefined;
  /** Absent where managedFields prove nobody: a removed field has no author, and none is guessed. */
  readonly author?: Author;
}

/** What a look at one object found. */
export type Verdict =
  /**
   * As wanted. `watch`: managers other than Helm's that own a field which the manifest sets and no rule ignores: their edits
   * stir the object, too. `unowned`: such a field is nobody's, so everybody's edits have to stir it.
   */
  | {
      readonly state: 'InSync';
      readonly live: LiveObject;
      readonly watch: readonly string[];
      readonly unowned?: true;
    }
  /** Differs. `fields` is never empty. `applicable`: the server accepts the wanted object on the live one (a dry run passed). */
  | {
      readonly state: 'Modified';
      readonly live: LiveObject;
      readonly watch: readonly string[];
      readonly fields: readonly FieldDrift[];
      readonly applicable: boolean;
    }
  /** Not there. */
  | { readonly state: 'Missing' }
  /** There, and going (deletionTimestamp): its end is an event. */
  | { readonly state: 'Terminating'; readonly live: LiveObject }
  /** Taken out by its annotation or by a rule with the path ''. */
  | { readonly state: 'Excluded'; readonly live: LiveObject | undefined; readonly by: 'annotation' | 'rule' }
  /** Another Helm release says that it is its own (meta.helm.sh/release-*): not fought over. */
  | { readonly state: 'Foreign'; readonly live: LiveObject; readonly owner: string }
  /** The cluster does not serve its kind (now). */
  | { readonly state: 'NotServed' };

/** A verdict and what else was learned. */
export interface Verification {
  readonly verdict: Verdict;
  /** For people: unknown fields in the manifest, why no dry run could be made. Without values. */
  readonly notes: readonly string[];
}

/** A live object in full. */
export type LiveObject = KubeObject & JsonObject;

/** What became of putting one object back. Errors of the connection are thrown (KubeError). */
export type Correction =
  /** Written; `live` is the server's answer. */
  | { readonly outcome: 'corrected'; readonly live: LiveObject; readonly created: boolean }
  /** Somebody wrote meanwhile: look again. */
  | { readonly outcome: 'conflict' }
  /** Only deleting and creating it anew would do: an immutable field. Not tried again before it changes. */
  | { readonly outcome: 'needs-recreation'; readonly message: string }
  /** The server refuses (quota, admission, validation, permission): tried again with back-off. */
  | { readonly outcome: 'refused'; readonly message: string }
  /** Its namespace is going, or its kind is not served: tried again with back-off, and that is no fight. */
  | { readonly outcome: 'waiting'; readonly message: string };
