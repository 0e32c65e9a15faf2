/**
 * Label selectors (metav1.LabelSelector, and the string form of the API's labelSelector parameter) as Kubernetes reads
 * them: "Labels and Selectors" in its documentation; the rules for keys and values are those of "Syntax and character
 * set" there.
 */

export type Labels = Readonly<Record<string, string>>;

export type SelectorOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';

export interface LabelSelectorRequirement {
  readonly key: string;
  readonly operator: SelectorOperator;
  readonly values?: readonly string[];
}

/** metav1.LabelSelector. Empty: matches everything. */
export interface LabelSelector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly LabelSelectorRequirement[];
}

const MAX_NAME_CHARS = 63;
const MAX_PREFIX_CHARS = 253;
const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** True when `labels` satisfy `selector`. An absent label satisfies NotIn and DoesNotExist. An operator nobody knows matches nothing. */
export function matchesSelector(selector: LabelSelector, labels: Labels | undefined): boolean {
  const has = labels ?? {};
  return requirementsOf(selector).every((requirement) => satisfies(requirement, has));
}

/** The string form for the API's labelSelector parameter; '' for an empty selector. */
export function formatSelector(selector: LabelSelector): string {
  return requirementsOf(selector).map(formatRequirement).join(',');
}

/** What is wrong with a selector, one sentence per field, each beginning with the field's path (`path` and below). [] when it is valid. */
export function validateSelector(selector: LabelSelector, path: string): string[] {
  const problems: string[] = [];
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    const at = `${path}.matchLabels[${key}]`;
    problems.push(...prefixed(at, keyProblem(key)), ...prefixed(at, valueProblem(value)));
  }
  (selector.matchExpressions ?? []).forEach((requirement, index) => {
    problems.push(...requirementProblems(requirement, `${path}.matchExpressions[${index}]`));
  });
  return problems;
}

function requirementsOf(selector: LabelSelector): LabelSelectorRequirement[] {
  const equal = Object.entries(selector.matchLabels ?? {}).map(([key, value]): LabelSelectorRequirement => ({
    key,
    operator: 'In',
    values: [value],
  }));
  return [...equal, ...(selector.matchExpressions ?? [])];
}

function satisfies({ key, operator, values = [] }: LabelSelectorRequirement, labels: Labels): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return false;
  }
}

function formatRequirement({ key, operator, values = [] }: LabelSelectorRequirement): string {
  switch (operator) {
    case 'In':
      return values.length === 1 ? `${key}=${values[0] ?? ''}` : `${key} in (${values.join(',')})`;
    case 'NotIn':
      return values.length === 1 ? `${key}!=${values[0] ?? ''}` : `${key} notin (${values.join(',')})`;
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
  }
}

function requirementProblems(requirement: LabelSelectorRequirement, at: string): string[] {
  const values = requirement.values ?? [];
  return [
    ...prefixed(`${at}.key`, keyProblem(requirement.key)),
    ...prefixed(`${at}.operator`, operatorProblem(requirement.operator)),
    ...prefixed(`${at}.values`, countProblem(requirement.operator, values.length)),
    ...values.flatMap((value, index) => prefixed(`${at}.values[${index}]`, valueProblem(value))),
  ];
}

function operatorProblem(operator: string): string | undefined {
  return ['In', 'NotIn', 'Exists', 'DoesNotExist'].includes(operator)
    ? undefined
    : `"${operator}" is none of In, NotIn, Exists, DoesNotExist`;
}

function countProblem(operator: string, count: number): string | undefined {
  if ((operator === 'In' || operator === 'NotIn') && count === 0) return `must not be empty for operator ${operator}`;
  if ((operator === 'Exists' || operator === 'DoesNotExist') && count > 0) {
    return `must be empty for operator ${operator}`;
  }
  return undefined;
}

function keyProblem(key: string): string | undefined {
  const slash = key.indexOf('/');
  const prefix = slash < 0 ? undefined : key.slice(0, slash);
  const name = key.slice(slash + 1);
  if (name.length > MAX_NAME_CHARS || !NAME.test(name)) {
    return `"${key}" is no label key: its name must be 1 to ${MAX_NAME_CHARS} of A-Z a-z 0-9 - _ . and begin and end with a letter or digit`;
  }
  if (prefix !== undefined && (prefix.length > MAX_PREFIX_CHARS || !PREFIX.test(prefix))) {
    return `"${key}" is no label key: what stands before the slash must be a DNS subdomain`;
  }
  return undefined;
}

function valueProblem(value: string): string | undefined {
  if (value === '' || (value.length <= MAX_NAME_CHARS && NAME.test(value))) return undefined;
  return `"${value}" is no label value: it must be at most ${MAX_NAME_CHARS} of A-Z a-z 0-9 - _ . and begin and end with a letter or digit`;
}

function prefixed(at: string, problem: string | undefined): string[] {
  return problem === undefined ? [] : [`${at}: ${problem}`];
}

/**
 * Reads the string form. Throws an Error that names what it stumbled on. `=`, `==`, `!=`, `in (…)`, `notin (…)`, `key`,
 * `!key`, joined by commas.
 */
export function parseSelector(text: string): LabelSelector {
  const matchExpressions = splitTerms(text).map(parseTerm);
  const selector = { matchExpressions };
  const [problem] = validateSelector(selector, 'selector');
  if (problem !== undefined) throw new Error(`label selector "${text}": ${problem}`);
  return selector;
}

/** Commas inside parentheses do not separate terms. */
function splitTerms(text: string): string[] {
  const terms = text.split(/,(?![^(]*\))/).map((term) => term.trim());
  if (terms.length === 1 && terms[0] === '') return [];
  if (terms.includes('')) throw new Error(`label selector "${text}": a comma with nothing beside it`);
  return terms;
}

const SET_TERM = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/;
const EQUAL_TERM = /^([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)$/;
const BARE_TERM = /^(!?)\s*([^=!\s()]+)$/;

function parseTerm(term: string): LabelSelectorRequirement {
  const found = parseSetTerm(term) ?? parseEqualTerm(term) ?? parseBareTerm(term);
  if (found !== undefined) return found;
  throw new Error(`label selector: "${term}" is none of key, !key, key=value, key!=value, key in (…), key notin (…)`);
}

function parseSetTerm(term: string): LabelSelectorRequirement | undefined {
  const [, key, operator, list] = SET_TERM.exec(term) ?? [];
  if (key === undefined || list === undefined) return undefined;
  const values = list.split(',').map((value) => value.trim());
  return { key, operator: operator === 'in' ? 'In' : 'NotIn', values };
}

function parseEqualTerm(term: string): LabelSelectorRequirement | undefined {
  const [, key, operator, value = ''] = EQUAL_TERM.exec(term) ?? [];
  return key === undefined ? undefined : { key, operator: operator === '!=' ? 'NotIn' : 'In', values: [value] };
}

function parseBareTerm(term: string): LabelSelectorRequirement | undefined {
  const [, not, key] = BARE_TERM.exec(term) ?? [];
  return key === undefined ? undefined : { key, operator: not === '!' ? 'DoesNotExist' : 'Exists' };
}
