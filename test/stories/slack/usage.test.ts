import { afterEach, describe, expect, test } from "vitest";
import type { Person } from "../../simulators/slack/person.ts";
import { startSlackStory, type SlackStory } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
afterEach(async () => {
  const { badAcks } = story.slack;
  await story.close();
  expect(badAcks).toEqual([]);
});

describe("/usage and /help on Slack", () => {
  test("show a person their own, and an admin everybody's, as a table and as a file", async () => {
    let admin: Person | undefined;
    story = await startSlackStory({
      chat: () => "forty-two",
      settings: (slack) => {
        admin = slack.person("Root");
        return { ADMINS: `slack:user:${admin.id}` };
      },
    });
    const { slack } = story;
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana, admin!]);
    const last = (name: string, words: RegExp) =>
      slack.waitFor(`the answer to ${name}`, () =>
        channel.transcript().findLast(({ onlyFor, text }) => onlyFor === name && words.test(text)),
      );
    await ana.usesCommand("/ask", "what is it?", { channel: channel.id });
    await story.answerTo(channel.id, undefined);

    await ana.usesCommand("/usage", "", { channel: channel.id });
    const mine = await last("Ana", /Your usage/);
    expect(mine.text).toContain("| Calls | 1 | 1 |");
    expect(mine.text).toContain("Without 1 call of models whose price is not known");
    expect(mine.text).not.toContain("Everybody");
    await ana.usesCommand("/usage", "who:everybody", { channel: channel.id });
    await last("Ana", /only admins/);

    await admin!.usesCommand("/usage", "by:person", { channel: channel.id });
    const byPerson = await last("Root", /Usage of everybody/);
    expect(byPerson.text).toContain("| Ana | 1 |");
    await admin!.usesCommand("/usage", "csv:yes", { channel: channel.id });
    const file = await slack.waitFor("the file", () =>
      slack
        .directMessages(admin!)
        .transcript()
        .find(({ files }) => files.length > 0),
    );
    const csv = new TextDecoder().decode(file.files[0]?.bytes);
    expect(csv).toContain(",Ana,");
    expect(csv).toContain(`slack:channel:${channel.id},#ideas,test/chat-model,chat,1,`);
  });

  test("/help explains Slack, with names of admins", async () => {
    story = await startSlackStory({
      settings: (slack) => ({ ADMINS: `slack:user:${slack.person("Root").id}` }),
    });
    const { slack } = story;
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    await ana.usesCommand("/help", "", { channel: channel.id });
    const help = await slack.waitFor("the help", () =>
      channel.transcript().find(({ text }) => text.includes("How to talk to me")),
    );
    expect(help.onlyFor).toBe("Ana");
    expect(help.text).toContain("Slack has no slash commands in threads");
    expect(help.text).toContain("Root.");
  });
});
