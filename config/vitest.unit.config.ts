import { defineConfig } from 'vitest/config';

// Unit tests stand beside the code and touch no cluster.
export default defineConfig({
  test: { include: ['src/**/*.test.ts'], pool: 'forks', testTimeout: 20_000, restoreMocks: true },
});
