import { FIELD_MANAGER } from './dry-run.ts';
import { authorOf, foreignWatch, ownedByApply, ownedOnlyByUnknown, ownersOf } from './managed-fields.ts';
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
