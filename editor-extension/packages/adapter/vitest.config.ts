import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Nothing is slow because of it: it ends a test that would hang.
    testTimeout: 60_000,
    // Two files at once are what the smallest machine of CI has cores for.
    maxWorkers: 2,
  },
});
