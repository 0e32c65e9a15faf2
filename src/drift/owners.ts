import { FIELD_MANAGER } from './dry-run.ts';
import { isKnownController } from './known-controllers.ts';
import {
  authorOf,
  foreignWatch,
  hasManagedFields,
  ownedByApply,
  ownedOnlyByUnknown,
  ownersOf,
} from './managed-fields.ts';
import { valueAt } from './pointer.ts';
import type { Author, LiveObject, Path } from './types.ts';

/** Who owns which field of one live object: the questions that verifying and correcting ask of its managedFields. */
export class Owners {
  readonly #live: LiveObject;
  readonly #helmManagers: ReadonlySet<string>;

  constructor(live: LiveObject, helmManagers: ReadonlySet<string>) {
    this.#live = live;
    this.#helmManagers = helmManagers;
  }

  /** Who but Helm wrote it, where that is proved. */
  authorOf(path: Path): Author | undefined {
    return authorOf(this.#live, path, this.#helmManagers);
  }

  /** An earlier apply by the manager of our writes owns it, or something below: leaving it out of the next one removes it. */
  isApplied(path: Path): boolean {
    return ownedByApply(this.#live, path, FIELD_MANAGER);
  }

  /** Managers other than Helm's that own one of these. */
  watch(paths: readonly Path[]): readonly string[] {
    return foreignWatch(this.#live, paths, this.#helmManagers);
  }

  /** Does a manager own it that is neither Helm nor a controller of Kubernetes? */
  isForeign(path: Path): boolean {
    return this.watch([path]).some((manager) => !isKnownController(manager));
  }

  /**
   * Is one of these, in the live object, nobody's? Whoever changes it takes it from no entry. So it is with a Secret's
   * `data` that Helm 4 applied as `stringData`: the server books that name on Helm, and `data` on whoever writes it later (seen on 1.35).
   */
  isUnowned(paths: readonly Path[]): boolean {
    if (!hasManagedFields(this.#live)) return false;
    return paths.some(
      (path) => isBooked(path) && !isEmpty(this.#live, path) && ownersOf(this.#live, path).length === 0,
    );
  }

  /** Put in by hand. */
  unknown(): readonly Path[] {
    return ownedOnlyByUnknown(this.#live, this.#helmManagers);
  }

  /** Written by `helm` and by nobody since; `manager`, CAAPH's name, is that of many another controller and proves nothing. */
  isHelmsAlone(path: Path): boolean {
    const owners = ownersOf(this.#live, path);
    return owners.length > 0 && owners.every(({ manager }) => manager === FIELD_MANAGER);
  }
}

/** What an object is called is in nobody's entry. */
const IDENTITY: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata/name', 'metadata/namespace']);

function isBooked(path: Path): boolean {
  return !IDENTITY.has(path.join('/'));
}

/** A server may drop, or make up, what is empty, and nobody wrote it. */
function isEmpty(live: LiveObject, path: Path): boolean {
  const value = valueAt(live, path);
  return value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0);
}
