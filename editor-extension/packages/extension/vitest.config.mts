import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Nothing is slow because of it: it ends a test that would hang.
    testTimeout: 60_000,
  },
});
