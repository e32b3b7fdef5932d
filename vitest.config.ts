import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    globals: false,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // What is waited for comes soon; a busy machine is not a failure.
    expect: { poll: { timeout: 15_000 } },
    setupFiles: ["test/patience.ts"],
    // Most of the time is spent waiting for processes, sockets and browsers; more at once starve each other.
    maxWorkers: 2,
    globalSetup: ["test/left-out.ts"],
    projects: [
      { extends: true, test: { name: "unit", include: ["test/unit/**/*.test.ts"] } },
      { extends: true, test: { name: "contract", include: ["test/contract/**/*.test.ts"] } },
      {
        extends: true,
        test: { name: "e2e", include: ["test/e2e/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
      },
    ],
  },
});
