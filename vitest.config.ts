import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    globals: false,
    testTimeout: 60_000,
    hookTimeout: 30_000,
    // What is waited for comes soon; a busy machine is not a failure.
    expect: { poll: { timeout: 15_000 } },
    setupFiles: ["test/patience.ts"],
    maxWorkers: 2,
    // Files share the modules that they import: the SDKs take a second each to load.
    isolate: false,
    // Redis and Postgres start once a run, when a test first asks for them.
    globalSetup: ["test/support/shared-servers.ts"],
    reporters: ["default", "./test/run-report.ts"],
    projects: [
      // What the project says about itself: it runs in `npm run check`.
      { extends: true, test: { name: "self", include: ["test/self/**/*.test.ts"] } },
      { extends: true, test: { name: "unit", include: ["test/unit/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "contract",
          include: ["test/contract/**/*.test.ts"],
          // A file that gives hours to the process's own clock must not leave them to the next one.
          isolate: true,
        },
      },
      {
        extends: true,
        test: {
          name: "stories",
          include: ["test/stories/**/*.test.ts", "test/e2e/**/*.test.ts"],
          exclude: ["test/e2e/web/**"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: "page",
          include: ["test/e2e/web/**/*.test.ts"],
          // What one file leaves in its browser's windows must not reach the next one.
          isolate: true,
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: "endurance",
          include: ["test/endurance/**/*.test.ts"],
          testTimeout: 300_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
