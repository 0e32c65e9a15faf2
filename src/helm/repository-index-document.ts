import { setImmediate as turn } from 'node:timers/promises';
import { parse } from 'yaml';
import { HelmError } from './errors.ts';

/** One version of a chart, as far as anybody here asks. */
export interface IndexEntry {
  readonly version: string;
  readonly appVersion?: string;
  /** sha256 of the archive, hex, lower case; absent where the index has none. */
  readonly digest?: string;
  /** Absolute or relative to the repository. */
  readonly urls: readonly string[];
}

/**
 * A chart repository's index.yaml, kept small: of each chart the lines that matter, which are parsed when the chart is
 * first asked for. Public indexes have tens of megabytes; a YAML parser takes many seconds and a gigabyte over them,
 * while going through their lines takes a fraction of a second. Every index that a tool in Go wrote is laid out alike;
 * one that is not is parsed as a whole.
 */
export class IndexDocument {
  readonly #charts: Map<string, readonly IndexEntry[] | string>;
  /** Bytes, about, that this keeps. */
  readonly size: number;

  private constructor(charts: Map<string, readonly IndexEntry[] | string>) {
    this.#charts = charts;
    let size = 0;
    for (const [name, chart] of charts) {
      size += 100 + name.length + (typeof chart === 'string' ? chart.length : chart.length * 300);
    }
    this.size = size;
  }

  /** Reads an index. Lets other work in between. Rejects with HelmError RepositoryInvalid. */
  static async read(text: string): Promise<IndexDocument> {
    const json = /^\s*\{/.test(text.slice(0, 100)) ? parseJson(text) : undefined;
    if (json !== undefined) return new IndexDocument(wholeIndex(json));
    const lines = await sliceIndex(text);
    return new IndexDocument(lines ?? wholeIndex(parseYaml(text)));
  }

  get names(): readonly string[] {
    return [...this.#charts.keys()];
  }

  /** The versions of a chart in the index's order; undefined when it has no such chart. Throws HelmError RepositoryInvalid. */
  entries(name: string): readonly IndexEntry[] | undefined {
    const chart = this.#charts.get(name);
    if (typeof chart !== 'string') return chart;
    const entries = readEntries(parseYaml(chart));
    this.#charts.set(name, entries);
    return entries;
  }
}

/** Undefined: it may be YAML in braces. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** "failsafe": every scalar is text, so that a version 1.10 without quotes does not become 1.1. */
function parseYaml(text: string): unknown {
  try {
    return parse(text, { schema: 'failsafe', logLevel: 'error', merge: true });
  } catch (error) {
    const why = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    throw new HelmError('RepositoryInvalid', `its index cannot be parsed: ${why.slice(0, 200)}`, { cause: error });
  }
}

function wholeIndex(index: unknown): Map<string, readonly IndexEntry[]> {
  if (!isRecord(index)) throw new HelmError('RepositoryInvalid', 'its index.yaml is not an index of charts');
  const { entries } = index;
  const charts = new Map<string, readonly IndexEntry[]>();
  if (!isRecord(entries)) {
    if (entries === undefined || entries === null || entries === '') return charts;
    throw new HelmError('RepositoryInvalid', 'entries of its index.yaml is not a map');
  }
  for (const [name, list] of Object.entries(entries)) charts.set(name, readEntries(list));
  return charts;
}

function readEntries(list: unknown): IndexEntry[] {
  if (!Array.isArray(list)) return [];
  return list.filter(isRecord).flatMap(readEntry);
}

function readEntry(item: Record<string, unknown>): IndexEntry[] {
  const version = scalar(item['version']);
  if (version === undefined) return [];
  const urls = Array.isArray(item['urls']) ? item['urls'].flatMap((url) => scalar(url) ?? []) : [];
  const appVersion = scalar(item['appVersion']);
  const digest = scalar(item['digest'])
    ?.replace(/^sha256:/i, '')
    .toLowerCase();
  return [
    { version, ...(appVersion === undefined ? {} : { appVersion }), ...(isSha256(digest) ? { digest } : {}), urls },
  ];
}

function isSha256(text: string | undefined): boolean {
  return text !== undefined && /^[0-9a-f]{64}$/.test(text);
}

function scalar(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Milliseconds of going through lines before other work gets its turn. */
const SLICE_MS = 10;

/**
 * The lines that matter, by chart, as YAML of a list each. Undefined when the text is not laid out as Go's YAML writes it:
 * `entries:` at the margin, charts as keys under it, versions as a block list, their fields one below the other.
 */
async function sliceIndex(text: string): Promise<Map<string, string> | undefined> {
  const slicer = new IndexSlicer();
  let began = performance.now();
  for (let at = 0, count = 0; at < text.length; count += 1) {
    const end = text.indexOf('\n', at);
    const line = text.slice(at, end === -1 ? text.length : end);
    at = end === -1 ? text.length : end + 1;
    if (!slicer.take(line.endsWith('\r') ? line.slice(0, -1) : line)) return undefined;
    if (count % 1000 === 0 && performance.now() - began > SLICE_MS) {
      await turn();
      began = performance.now();
    }
  }
  return slicer.finish();
}

const KEEP = /^(["']?)(?:version|appVersion|digest|urls)\1\s*:/;
/** Whatever else stands in the place of a field (an anchor, an alias, a merge) is not laid out as expected. */
const FIELD = /^(?:"[^"]*"|'[^']*'|[\w./-]+)\s*:(?:\s|$)/;
/** An alias in a value may refer to lines that are left out. */
const REFERS = /[:-]\s+[&*]/;
const CHART_KEY = /^(?:"([^"\\]+)"|'([^']+)'|([^\s#'"&*!|>%@`{}[\],:?-][^:#]*)):\s*(\[\s*\])?\s*$/;

/** A chart being gone through. Indents are columns, -1 until known. */
interface ChartLines {
  readonly name: string;
  readonly lines: string[];
  itemIndent: number;
  fieldIndent: number;
}

class IndexSlicer {
  readonly #charts = new Map<string, string>();
  #seen = false;
  #inside = false;
  #chartIndent: number | undefined;
  #chart: ChartLines | undefined;
  #keep = false;

  /** One line more. False: not laid out as expected. */
  take(line: string): boolean {
    const indent = indentOf(line);
    if (indent === line.length || line[indent] === '#') return this.#blank(line);
    if (line[indent] === '\t') return false;
    if (indent === 0 && line[0] !== '-') return this.#margin(line);
    return !this.#inside || this.#entry(line, indent);
  }

  finish(): Map<string, string> | undefined {
    this.#endChart();
    return this.#seen ? this.#charts : undefined;
  }

  /** Blank lines belong to a text that goes on; a comment is one only outside of such a text. */
  #blank(line: string): boolean {
    if (this.#keep) this.#chart?.lines.push(line);
    return true;
  }

  #margin(line: string): boolean {
    this.#endChart();
    this.#inside = false;
    if (!/^(["']?)entries\1\s*:/.test(line)) return true;
    if (this.#seen || !/:\s*$/.test(line)) return false;
    this.#seen = true;
    this.#inside = true;
    return true;
  }

  #chartKey(text: string): boolean {
    this.#endChart();
    const match = CHART_KEY.exec(text);
    const found = match?.[1] ?? match?.[2] ?? match?.[3]?.trimEnd();
    if (found === undefined) return false;
    // A copy: a piece of a string keeps the whole index in memory.
    const name = Buffer.from(found).toString();
    if (this.#charts.has(name)) return false;
    this.#chart = { name, lines: [], itemIndent: -1, fieldIndent: -1 };
    return true;
  }

  #entry(line: string, indent: number): boolean {
    this.#chartIndent ??= indent;
    if (indent < this.#chartIndent) return false;
    if (indent === this.#chartIndent && !isItem(line, indent)) return this.#chartKey(line.slice(indent));
    return this.#chart !== undefined && this.#field(this.#chart, line, indent);
  }

  #field(chart: ChartLines, line: string, indent: number): boolean {
    if (chart.itemIndent === -1) chart.itemIndent = indent;
    if (indent === chart.itemIndent) return this.#item(chart, line, indent);
    if (indent < chart.fieldIndent) return false;
    if (indent === chart.fieldIndent && !isItem(line, indent))
      return this.#key(chart.lines, line.slice(indent), indent);
    if (this.#keep) chart.lines.push(line);
    return !this.#keep || !REFERS.test(line);
  }

  /** A version begins: its first field stands on the line of the dash. */
  #item(chart: ChartLines, line: string, indent: number): boolean {
    const field = indentOf(line, indent + 1);
    if (!isItem(line, indent) || field >= line.length) return false;
    chart.fieldIndent = field;
    chart.lines.push('-');
    return this.#key(chart.lines, line.slice(field), field);
  }

  #key(lines: string[], text: string, indent: number): boolean {
    this.#keep = KEEP.test(text);
    if (this.#keep) lines.push(' '.repeat(indent) + text);
    return FIELD.test(text) && !(this.#keep && REFERS.test(text));
  }

  #endChart(): void {
    if (this.#chart !== undefined) this.#charts.set(this.#chart.name, this.#chart.lines.join('\n'));
    this.#chart = undefined;
    this.#keep = false;
  }
}

function isItem(line: string, indent: number): boolean {
  return line[indent] === '-' && (line.length === indent + 1 || line[indent + 1] === ' ');
}

function indentOf(line: string, from = 0): number {
  let indent = from;
  while (line.charCodeAt(indent) === 32) indent += 1;
  return indent;
}
