import { defineConfig } from 'vitest/config';
import { reporters } from './reporters.ts';

// Real API servers: two files at a time, each with a fleet of its own, since a fleet waits more than it computes.
export default defineConfig({
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
