import { createReadStream } from 'node:fs';
import { Parser } from 'tar';
import type { ReadEntry } from 'tar';
import { parse } from 'yaml';
import { HelmError } from './errors.ts';

/** What Chart.yaml says. */
export interface ChartMetadata {
  readonly name: string;
  readonly version: string;
  readonly appVersion?: string;
}

/** Helm's own limit for one file of a chart, bytes. */
const MAX_CHART_YAML_BYTES = 5 * 1024 * 1024;
/** Helm's own limit for an unpacked chart, bytes. */
const MAX_UNPACKED_BYTES = 100 * 1024 * 1024;

/** Reads Chart.yaml out of a .tgz, and no further. Rejects with HelmError ChartInvalid. */
export async function readChartMetadata(path: string, signal: AbortSignal): Promise<ChartMetadata> {
  const text = await findChartYaml(path, signal);
  if (text === undefined) throw new HelmError('ChartInvalid', 'the archive holds no Chart.yaml');
  let chart: unknown;
  try {
    // As text all of it: a version 1.10 without quotes stays what it is.
    chart = parse(text, { schema: 'failsafe', logLevel: 'error' });
  } catch (error) {
    throw new HelmError('ChartInvalid', 'Chart.yaml of the archive cannot be parsed', { cause: error });
  }
  const name = field(chart, 'name');
  const version = field(chart, 'version');
  if (name === undefined || version === undefined) {
    throw new HelmError('ChartInvalid', 'Chart.yaml of the archive has no name or no version');
  }
  const appVersion = field(chart, 'appVersion');
  return { name, version, ...(appVersion === undefined ? {} : { appVersion }) };
}

function field(chart: unknown, name: string): string | undefined {
  if (typeof chart !== 'object' || chart === null) return undefined;
  const value: unknown = Object.entries(chart).find(([key]) => key === name)?.[1];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

async function findChartYaml(path: string, signal: AbortSignal): Promise<string | undefined> {
  const found = Promise.withResolvers<string | undefined>();
  let unpacked = 0;
  const parser = new Parser({
    onReadEntry: (entry) => {
      unpacked += entry.size;
      if (unpacked > MAX_UNPACKED_BYTES) found.reject(invalid(`unpacks to more than ${MAX_UNPACKED_BYTES} bytes`));
      else if (isChartYaml(entry.path)) readEntry(entry).then(found.resolve, found.reject);
      else entry.resume();
    },
  });
  parser.on('error', (error: Error) => {
    found.reject(invalid('is no gzipped tar', error));
  });
  parser.on('warn', (code: string, message: string) => {
    if (code === 'TAR_BAD_ARCHIVE') found.reject(invalid(`is damaged: ${message}`));
  });
  parser.on('end', () => {
    found.resolve(undefined);
  });
  // The stream ends when the answer is there: most charts begin with their Chart.yaml.
  const stream = createReadStream(path, { signal });
  stream.on('error', found.reject);
  stream.pipe(parser);
  try {
    return await found.promise;
  } finally {
    stream.unpipe();
    stream.destroy();
  }
}

/** <chart>/Chart.yaml; those of subcharts lie deeper. */
function isChartYaml(path: string): boolean {
  const parts = path.replace(/^(?:\.\/)+/, '').split('/');
  return parts.length === 2 && parts[1] === 'Chart.yaml';
}

async function readEntry(entry: ReadEntry): Promise<string> {
  if (entry.size > MAX_CHART_YAML_BYTES) throw invalid('has a Chart.yaml that is too large');
  const chunks: Buffer[] = [];
  for await (const chunk of entry) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function invalid(what: string, cause?: unknown): HelmError {
  return new HelmError('ChartInvalid', `the chart's archive ${what}`, { cause });
}
