import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    // The scenarios share one workbench and build on each other.
    fileParallelism: false,
    sequence: { concurrent: false, shuffle: false },
    bail: 1,
    // It ends a test that would hang; each wait has its own, shorter limit.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
