import { definePlatform } from "../../src/core/platform-module.ts";
import { text } from "../../src/core/settings.ts";

/** The folder for the registry. */
export const folder = definePlatform({
  id: "folder",
  title: "Folder",
  settings: { FOLDER: { schema: text.optional(), description: "talk through this folder" } },
  accessTerms: {},
  isOn: ({ FOLDER }) => FOLDER !== undefined,
  problems: () => [],
  startLine: ({ FOLDER }) => (FOLDER === undefined ? "off  FOLDER turns it on" : `on   ${FOLDER}`),
  tools: {},
  async load() {
    const { createFolderPlatform } = await import("./folder-platform.ts");
    return {
      create: ({ FOLDER = "." }, { log, clock, commands }) => ({
        platform: createFolderPlatform({ folder: FOLDER, log, clock, commands }),
      }),
    };
  },
});
