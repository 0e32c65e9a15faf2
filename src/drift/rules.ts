import { RE2JS } from 're2js';
import { matchesSelector, parseSelector } from '../kube/index.ts';
import type { LabelSelector } from '../kube/index.ts';
import { parsePointer, valueAt } from './pointer.ts';
import type {
  CompiledRules,
  InventoryObject,
  JsonObject,
  ObjectId,
  PathPattern,
  PathRule,
  RuleTarget,
} from './types.ts';

/** Parts of a target that are regular expressions. */
const PATTERNS = ['group', 'version', 'kind', 'name', 'namespace'] as const;
const SELECTORS = ['labelSelector', 'annotationSelector'] as const;

interface Rule {
  readonly index: number;
  readonly patterns: readonly PathPattern[];
  readonly matches: (subject: Subject) => boolean;
}

interface Subject {
  readonly id: ObjectId;
  readonly wanted: JsonObject;
  readonly live: JsonObject | undefined;
}

/**
 * Compiles a user's rules once. Expressions are RE2's, whose time is linear in the text: a tenant's rule must not hold the
 * controller. Never throws: what is wrong is in `problems`, under the name of `field`, and the rule is left out.
 */
export function compileRules(rules: readonly PathRule[], field: 'ignore' | 'quantities'): CompiledRules {
  const problems: string[] = [];
  const compiled = rules.flatMap((rule, index) => {
    const wrong: string[] = [];
    const patterns = rule.paths.flatMap((path, at) => {
      const pattern = attempt(() => parsePointer(path), wrong, `${field}[${index}].paths[${at}]`);
      return pattern === undefined ? [] : [pattern];
    });
    const matches = compileTarget(rule.target ?? {}, wrong, `${field}[${index}].target`);
    problems.push(...wrong);
    return wrong.length > 0 ? [] : [{ index, patterns, matches }];
  });
  return new Rules(compiled, problems, field);
}

class Rules implements CompiledRules {
  readonly problems: readonly string[];
  readonly #rules: readonly Rule[];
  readonly #field: string;

  constructor(rules: readonly Rule[], problems: readonly string[], field: string) {
    this.#rules = rules;
    this.problems = problems;
    this.#field = field;
  }

  patternsFor(id: ObjectId, wanted: JsonObject, live: JsonObject | undefined): readonly PathPattern[] {
    const subject = { id, wanted, live };
    return this.#rules.flatMap((rule) => (rule.matches(subject) ? rule.patterns : []));
  }

  unmatched(objects: readonly InventoryObject[]): readonly string[] {
    return this.#rules
      .filter((rule) => !objects.some(({ id, wanted }) => rule.matches({ id, wanted, live: undefined })))
      .map(({ index }) => `${this.#field}[${index}].target matches no object of the release`);
  }
}

function compileTarget(target: RuleTarget, wrong: string[], where: string): (subject: Subject) => boolean {
  const tests: ((subject: Subject) => boolean)[] = [];
  for (const part of PATTERNS) {
    const text = target[part] ?? '';
    if (text === '') continue;
    const pattern = attempt(() => RE2JS.compile(text), wrong, `${where}.${part}`);
    if (pattern !== undefined) tests.push(({ id }) => pattern.matches(id[part] ?? ''));
  }
  for (const part of SELECTORS) {
    const text = target[part] ?? '';
    if (text === '') continue;
    const selector = attempt(() => parseSelector(text), wrong, `${where}.${part}`);
    if (selector !== undefined) tests.push((subject) => selects(selector, subject, part));
  }
  return (subject) => tests.every((test) => test(subject));
}

/** What the manifest says counts as well as what stands there: a rule must not cease with the label that somebody removed. */
function selects(selector: LabelSelector, { wanted, live }: Subject, part: (typeof SELECTORS)[number]): boolean {
  const field = part === 'labelSelector' ? 'labels' : 'annotations';
  return [wanted, live].some((object) => object !== undefined && matchesSelector(selector, texts(object, field)));
}

function texts(object: JsonObject, field: string): Record<string, string> {
  const value = valueAt(object, ['metadata', field]);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(
    Object.entries(value).map(([key, text]) => [key, typeof text === 'string' ? text : JSON.stringify(text)]),
  );
}

function attempt<T>(compile: () => T, wrong: string[], where: string): T | undefined {
  try {
    return compile();
  } catch (error) {
    wrong.push(`${where}: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}
