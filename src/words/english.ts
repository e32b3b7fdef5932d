import { commandMessages } from "./en/commands.ts";
import { errorMessages } from "./en/errors.ts";
import { fileMessages } from "./en/files.ts";
import { fixMessages } from "./en/fix.ts";
import { otherModelMessages } from "./en/other-model.ts";
import { pageMessages } from "./en/page.ts";
import { pictureMessages } from "./en/pictures.ts";
import { platformMessages } from "./en/platforms.ts";
import { reportMessages } from "./en/reports.ts";
import { settingMessages } from "./en/settings.ts";
import { shellMessages } from "./en/shell.ts";
import { slackAgentMessages } from "./en/slack-agent.ts";
import { turnMessages } from "./en/turns.ts";

/**
 * The English catalogue, which the other languages' files translate key by key; texts that are declared elsewhere
 * (commands, settings) are translated by keys of their own. @see docs/words.md
 */
export const english = {
  ...commandMessages,
  ...errorMessages,
  ...fileMessages,
  ...fixMessages,
  ...otherModelMessages,
  ...pageMessages,
  ...pictureMessages,
  ...platformMessages,
  ...reportMessages,
  ...settingMessages,
  ...shellMessages,
  ...slackAgentMessages,
  ...turnMessages,
} as const;

export type MessageKey = keyof typeof english;
