import { commandMessages, settingMessages } from "./en/commands.ts";
import { dashboardMessages } from "./en/dashboard.ts";
import { errorMessages, fileMessages } from "./en/errors.ts";
import { fixMessages, turnMessages, otherModelMessages, pictureMessages } from "./en/turns.ts";
import { pageMessages } from "./en/page.ts";
import { platformMessages, slackAgentMessages } from "./en/platforms.ts";
import { reportMessages } from "./en/reports.ts";
import { shellMessages } from "./en/shell.ts";

/**
 * The English catalogue, which the files of other languages translate key by key. Texts that are declared
 * elsewhere (commands, settings) have translation keys of their own. @see docs/words.md
 */
export const english = {
  ...commandMessages,
  ...dashboardMessages,
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
