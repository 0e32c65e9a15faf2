/** Values of one placement: rendered when the template or what it reads has changed, and only then (caaph W19: `randAlphaNum` must not upgrade for ever). */
import { LRUCache } from 'lru-cache';
import { VALUES_INPUTS_ANNOTATION } from '../../api/index.ts';
import type { HelmChartProxy, HelmReleaseProxy } from '../../api/index.ts';
import { projectContext, templatePaths, valuesDigest } from '../../helm/index.ts';
import type { TemplatePaths, ValuesRenderer } from '../../helm/index.ts';
import type { Request } from '../../runtime/index.ts';
import { ReconcilerError } from '../errors.ts';
import type { CapiCluster } from '../shared.ts';
import type { Builtin, Builtins } from './builtins.ts';
import { VALUES_FAILED } from './contracts.ts';
import type { RenderedValues } from './desired.ts';
import { digest } from './digest.ts';

/** Milliseconds for one rendering, its place in the queue of renderings included. */
const RENDER_LIMIT_MS = 60_000;
/** Templates whose paths are remembered: one per HelmChartProxy in practice. */
const MAX_TEMPLATES = 1000;

export interface ValuesRequest {
  readonly request: Request;
  readonly chartProxy: HelmChartProxy;
  readonly cluster: CapiCluster;
  /** The HelmReleaseProxy as it is, when there is one: its values may still hold. */
  readonly proxy: HelmReleaseProxy | undefined;
}

export class Values {
  readonly #renderer: ValuesRenderer;
  readonly #builtins: Builtins;
  readonly #paths = new LRUCache<string, TemplatePaths>({ max: MAX_TEMPLATES });

  constructor(renderer: ValuesRenderer, builtins: Builtins) {
    this.#renderer = renderer;
    this.#builtins = builtins;
  }

  /**
   * The values, verbatim as rendered (caaph §1.10), and the digests to keep with them. Rejects with a ReconcilerError of
   * reason ValueParsingFailed that names the cluster, or with what the renderer or the API server threw.
   */
  async of(wanted: ValuesRequest, signal: AbortSignal): Promise<RenderedValues> {
    const template = wanted.chartProxy.spec.valuesTemplate ?? '';
    const paths = this.#pathsOf(template);
    const context = await this.#context(wanted, paths, signal);
    const inputs = digest([template, projected(context, paths)]);
    const standing = stillValid(wanted.proxy, inputs);
    if (standing !== undefined) return standing;
    const text = await this.#render(wanted, template, context, signal);
    const kept = adoptable(wanted.proxy, text) ?? text;
    return { text: kept, inputs: noteOf(inputs, kept) };
  }

  async #context(wanted: ValuesRequest, paths: TemplatePaths, signal: AbortSignal): Promise<Record<string, unknown>> {
    const builtins: Builtin[] = [];
    if (paths.controlPlane !== 'none') builtins.push('ControlPlane');
    if (paths.infraCluster !== 'none') builtins.push('InfraCluster');
    try {
      const parts = await this.#builtins.resolve(wanted.request, wanted.cluster, builtins, signal);
      return { Cluster: wanted.cluster, ...parts };
    } catch (error) {
      if (!(error instanceof ReconcilerError)) throw error;
      throw failure(wanted, error.message, error.class, error);
    }
  }

  async #render(
    wanted: ValuesRequest,
    template: string,
    context: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<string> {
    // Text without an action renders to itself.
    if (!template.includes('{{')) return template;
    const id = `${wanted.chartProxy.spec.chartName}-${wanted.cluster.metadata.name}`;
    const outcome = await this.#renderer.render({ id, template, context }, { signal, limitMs: RENDER_LIMIT_MS });
    if (outcome.ok) return outcome.text;
    throw failure(wanted, outcome.error, 'User');
  }

  #pathsOf(template: string): TemplatePaths {
    const known = this.#paths.get(template);
    if (known !== undefined) return known;
    const paths = templatePaths(template);
    this.#paths.set(template, paths);
    return paths;
  }
}

/** What the template reads of its context. */
function projected(context: Record<string, unknown>, paths: TemplatePaths): unknown[] {
  return [
    projectContext(context.Cluster, paths.cluster),
    projectContext(context.ControlPlane, paths.controlPlane),
    projectContext(context.InfraCluster, paths.infraCluster),
  ];
}

/** The values in the object, when they were rendered from the same inputs and nobody edited them since. */
function stillValid(proxy: HelmReleaseProxy | undefined, inputs: string): RenderedValues | undefined {
  if (proxy === undefined) return undefined;
  const text = proxy.spec.values ?? '';
  const note = noteOf(inputs, text);
  return proxy.metadata.annotations?.[VALUES_INPUTS_ANNOTATION] === note ? { text, inputs: note } : undefined;
}

/** The values in an object of CAAPH's, when they mean the same: taking it over changes nothing but the note. */
function adoptable(proxy: HelmReleaseProxy | undefined, text: string): string | undefined {
  const standing = proxy?.spec.values;
  if (standing === undefined || proxy?.metadata.annotations?.[VALUES_INPUTS_ANNOTATION] !== undefined) return undefined;
  return sameMeaning(standing, text) ? standing : undefined;
}

function sameMeaning(a: string, b: string): boolean {
  try {
    return a === b || valuesDigest(a) === valuesDigest(b);
  } catch {
    // One of them is no YAML: then they are texts, and they differ.
    return false;
  }
}

/** Inputs, and the values themselves: so an edit of spec.values by hand is seen and put right. */
function noteOf(inputs: string, text: string): string {
  return `${inputs}.${digest(text)}`;
}

/** In CAAPH's words (caaph §3.2, TestReconcileForCluster 4). */
function failure(
  wanted: ValuesRequest,
  message: string,
  cls: ReconcilerError['class'],
  cause?: unknown,
): ReconcilerError {
  const cluster = wanted.cluster.metadata.name;
  return new ReconcilerError({
    code: VALUES_FAILED,
    class: cls,
    message: `failed to parse values on cluster ${cluster}: ${message}`,
    cause,
  });
}
