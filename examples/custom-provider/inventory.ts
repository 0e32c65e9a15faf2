/** One cluster of the inventory: `{ "name": "eu-1", "labels": { "tier": "gold" }, "kubeconfig": "…" }`. */
export interface InventoryEntry {
  readonly name: string;
  /** What HelmChartProxies select by. */
  readonly labels: Readonly<Record<string, string>>;
  /** Absent: the cluster exists and cannot be reached yet. */
  readonly kubeconfig?: string;
}

/** What could be read, and what could not, in words without a kubeconfig's contents. Throws when it is no list at all. */
export function readInventory(value: unknown): { entries: InventoryEntry[]; problems: string[] } {
  if (!Array.isArray(value)) throw new Error('the inventory is no JSON list of clusters');
  const entries: InventoryEntry[] = [];
  const problems: string[] = [];
  for (const [index, item] of (value as unknown[]).entries()) {
    const problem = problemOf(item, entries);
    if (problem === undefined) entries.push(withLabels(item as InventoryEntry));
    else problems.push(`[${String(index)}]: ${problem}`);
  }
  return { entries, problems };
}

function problemOf(item: unknown, before: readonly InventoryEntry[]): string | undefined {
  if (typeof item !== 'object' || item === null) return 'it is no object';
  const { name, labels, kubeconfig } = item as Record<string, unknown>;
  if (typeof name !== 'string' || !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)) {
    return 'name must be lower case letters, digits and hyphens';
  }
  if (before.some((other) => other.name === name)) return `name ${name} is there twice`;
  if (labels !== undefined && !isLabels(labels)) return `${name}: labels must be an object of strings`;
  if (kubeconfig !== undefined && typeof kubeconfig !== 'string') return `${name}: kubeconfig must be a string`;
  return undefined;
}

function isLabels(value: unknown): value is Record<string, string> {
  return typeof value === 'object' && value !== null && Object.values(value).every((one) => typeof one === 'string');
}

function withLabels({ name, labels, kubeconfig }: Partial<InventoryEntry> & { name: string }): InventoryEntry {
  return { name, labels: labels ?? {}, ...(kubeconfig === undefined ? {} : { kubeconfig }) };
}
