import { afterAll, afterEach, onTestFinished } from "vitest";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";
import { haste } from "../surface.ts";
import { until } from "../../simulators/discord/until.ts";

/** Discord's own stories are told with this. */
export interface DiscordStage {
  /** Returns the Parley of this file. Stories on it have people and channels of their own. */
  begin(): Promise<Story>;
  /** Starts a Parley for this story alone and closes it when the story ends. */
  start(...options: Parameters<typeof startStory>): Promise<Story>;
}

/** Creates the {@link DiscordStage} of a file. */
export function createDiscordStage(): DiscordStage {
  let shared: Story | undefined;
  afterEach(async () => {
    if (shared === undefined) return;
    await until(() => shared?.isIdle(), { timeoutMs: 20_000 });
    shared.reset();
  });
  afterAll(() => shared?.close());
  return {
    begin: async () => (shared ??= await startStory({}, {}, undefined, haste)),
    async start(settings = {}, simulator = {}, models, ownHaste = haste) {
      const story = await startStory(settings, simulator, models, ownHaste);
      onTestFinished(() => story.close());
      return story;
    },
  };
}
