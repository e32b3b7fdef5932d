import { defineConfig } from "oxlint";
import { importRules } from "./rooms.config.ts";

export default defineConfig({
  plugins: ["typescript", "unicorn", "oxc", "import", "node", "promise"],
  categories: {
    correctness: "error",
    suspicious: "error",
  },
  env: {
    node: true,
    es2024: true,
  },
  ignorePatterns: ["node_modules", "coverage", "data"],
  rules: {
    eqeqeq: "error",
    "no-console": "error",
    "no-empty": "error",
    "no-empty-function": "off",
    "no-shadow": "off",
    "no-underscore-dangle": "off",
    "no-await-in-loop": "off",
    "consistent-return": "off",
    "no-process-env": "off",
    "node/no-process-env": "error",
    "import/no-cycle": "error",
    "import/no-named-as-default-member": "off",
    "import/no-unassigned-import": "off",
    "max-lines": [
      "error",
      {
        max: 500,
        skipBlankLines: true,
        skipComments: true,
      },
    ],
    "typescript/no-explicit-any": "error",
    "typescript/consistent-type-imports": "error",
    "typescript/no-floating-promises": "error",
    "typescript/no-misused-promises": "error",
    "typescript/switch-exhaustiveness-check": [
      "error",
      {
        considerDefaultExhaustiveForUnions: true,
      },
    ],
    "typescript/no-unsafe-assignment": "error",
    "typescript/no-unsafe-call": "error",
    "typescript/no-unsafe-member-access": "error",
    "typescript/no-unsafe-return": "error",
    "typescript/no-unsafe-argument": "error",
    "typescript/no-unsafe-type-assertion": "off",
    // The SDKs type numbers of their platforms as enums of several packages.
    "typescript/no-unsafe-enum-assignment": "off",
    "unicorn/consistent-function-scoping": "off",
    "unicorn/no-array-sort": "off",
    "promise/always-return": "off",
  },
  overrides: [
    ...importRules(import.meta.dirname),
    {
      files: ["src/platforms/web/page/**"],
      env: {
        browser: true,
        node: false,
      },
      rules: {},
    },
    {
      files: ["test/**", "bench/**", "deploy/**", "*.config.ts"],
      rules: {
        "no-console": "off",
        "node/no-process-env": "off",
        "typescript/no-unsafe-assignment": "off",
        "typescript/no-unsafe-member-access": "off",
        "typescript/no-unsafe-argument": "off",
        "typescript/no-unsafe-call": "off",
        "typescript/no-unsafe-return": "off",
      },
    },
    {
      // JavaScript, which has no types here.
      files: ["src/launch.js", "src/main.ts"],
      rules: {
        "typescript/no-unsafe-assignment": "off",
        "typescript/no-unsafe-member-access": "off",
        "typescript/no-unsafe-argument": "off",
        "typescript/no-unsafe-call": "off",
        "typescript/no-unsafe-return": "off",
      },
    },
    {
      files: ["src/boot.ts"],
      rules: {
        "node/no-process-env": "off",
      },
    },
  ],
});
