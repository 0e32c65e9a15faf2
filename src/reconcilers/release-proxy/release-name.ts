/** Names of releases, for objects that leave the name to us (caaph §1.5, W17). */

/** Helm's limit (its release name becomes a label value with a prefix). */
const MAX_RELEASE_NAME = 53;

/**
 * Makes `<base>-<unixSeconds>`, as `helm install --generate-name` does: base is the last part of the chart's name up to its
 * first dot. Two asked for within one second, by charts of one name for one cluster, must differ, so a second is used once
 * per generator. What no release may be called is mended instead of refused: the user chose the chart's name, not this one.
 */
export class ReleaseNames {
  #last = 0;

  generate(chartName: string, nowMs: number): string {
    this.#last = Math.max(Math.floor(nowMs / 1000), this.#last + 1);
    const suffix = `-${this.#last}`;
    const base = baseOf(chartName).slice(0, MAX_RELEASE_NAME - suffix.length);
    return `${base.replace(/-+$/, '')}${suffix}`;
  }
}

function baseOf(chartName: string): string {
  const last = chartName.replace(/\/+$/, '').split('/').at(-1) ?? '';
  const base = last === '' || last === '.' ? 'chart' : (last.split('.')[0] ?? '');
  const mended = base
    .toLowerCase()
    .replace(/[^a-z0-9-]/g, '-')
    .replace(/^-+|-+$/g, '');
  return mended === '' ? 'chart' : mended;
}
