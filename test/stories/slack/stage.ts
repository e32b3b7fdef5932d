import { afterAll, afterEach, expect, onTestFinished } from "vitest";
import {
  startInTwoWorkspaces,
  startSlackStory,
  type SlackMode,
  type SlackStory,
  type StoryOptions,
  type StoryScript,
} from "../../e2e/slack/slack-story.ts";
import { haste } from "../surface.ts";

/** Slack's own stories are told with this. */
export interface SlackStage {
  /** Returns the Parley of this file in a mode. Stories on it have people and channels of their own. */
  begin(script?: StoryScript, mode?: SlackMode): Promise<SlackStory>;
  /** Starts a Parley for this story alone and closes it when the story ends. */
  start(options?: StoryOptions): Promise<SlackStory>;
  /** Starts a Parley over HTTP in two workspaces, for this story alone. */
  startInTwo(script?: StoryScript): ReturnType<typeof startInTwoWorkspaces>;
}

/** Creates a {@link SlackStage}. After each story Slack must have accepted all acknowledgements. */
export function createSlackStage(): SlackStage {
  const shared = new Map<SlackMode, SlackStory>();
  afterEach(async () => {
    for (const { slack, parley } of shared.values()) {
      await slack.waitFor("the end of all turns", () => parley.assistant.pending() === 0, 20_000);
      expect(slack.badAcks).toEqual([]);
    }
  });
  afterAll(async () => {
    for (const story of shared.values()) await story.close();
  });
  return {
    async begin(script = {}, mode = "socket") {
      const story = shared.get(mode) ?? (await startSlackStory({ mode, haste }));
      shared.set(mode, story);
      story.begin(script);
      return story;
    },
    async start(options) {
      const story = await startSlackStory({ haste, ...options });
      onTestFinished(() => end(story));
      return story;
    },
    async startInTwo(script) {
      const two = await startInTwoWorkspaces({ haste, ...script });
      onTestFinished(() => end(two));
      return two;
    },
  };
}

async function end(story: SlackStory): Promise<void> {
  const { badAcks } = story.slack;
  await story.close();
  expect(badAcks).toEqual([]);
}
