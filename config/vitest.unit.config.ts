import { defineConfig } from 'vitest/config';
import { reporters } from './reporters.ts';

// Unit tests stand beside the code and touch no cluster.
export default defineConfig({
  test: { ...reporters('unit'), include: ['src/**/*.test.ts'], pool: 'forks', testTimeout: 20_000, restoreMocks: true },
});
