import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { reporters } from './reporters.ts';

// Real API servers: two files at a time, each with a fleet of its own, since a fleet waits more than it computes.
export default defineConfig({
  // The examples import the package as a user does.
  resolve: { alias: { capstan: fileURLToPath(new URL('../src/index.ts', import.meta.url)) } },
  test: {
    ...reporters('e2e'),
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
  },
});
