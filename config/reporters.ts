import { join } from 'node:path';

/** The usual output, and a JSON report where CAPSTAN_TEST_REPORTS names a folder: .ci/run counts from it. */
export function reporters(suite: string): { reporters: string[]; outputFile?: Record<string, string> } {
  const folder = process.env['CAPSTAN_TEST_REPORTS'];
  if (folder === undefined) return { reporters: ['default'] };
  return { reporters: ['default', 'json'], outputFile: { json: join(folder, `${suite}.json`) } };
}
