import { defineConfig } from 'vitest/config';
import { reporters } from './reporters.ts';

// Real API servers: files run one after another, since two cores carry one fleet at a time.
export default defineConfig({
  test: {
    ...reporters('e2e'),
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
  },
});
