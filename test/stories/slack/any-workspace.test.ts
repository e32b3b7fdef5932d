import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, test } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import type { Approval } from "../../simulators/slack/oauth.ts";
import type { SimulatedWorkspace } from "../../simulators/slack/simulated-workspace.ts";
import { startSlackStory, textOf, type SlackStory, type StoryOptions } from "../../e2e/slack/slack-story.ts";
import { haste } from "../surface.ts";

let story: SlackStory;
const secrets = new Set<string>();

afterEach(async () => {
  const { badAcks, signingSecret, oauth, calls } = story.slack;
  const { logged } = story;
  for (const { token } of calls) if (token !== undefined) secrets.add(token);
  await story.close();
  expect(badAcks).toEqual([]);
  for (const secret of [signingSecret, oauth.clientSecret, ...secrets])
    expect(logged.join("\n")).not.toContain(secret);
});

async function begin(options: StoryOptions = {}): Promise<SlackStory> {
  const { settings } = options;
  story = await startSlackStory({
    mode: "http",
    haste,
    ...options,
    settings: (slack) => ({
      SLACK_BOT_TOKEN: "",
      SLACK_CLIENT_ID: slack.oauth.clientId,
      SLACK_CLIENT_SECRET: slack.oauth.clientSecret,
      STORE_ENCRYPTION_KEYS: randomBytes(32).toString("base64"),
      ...(typeof settings === "function" ? settings(slack) : settings),
    }),
  });
  return story;
}

/** A browser opens the installation page. */
async function opens(): Promise<{ readonly url: string; readonly cookie: string }> {
  const response = await fetch(`${story.parley.url}/slack/install`);
  expect(response.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  const [, link = ""] = /href="([^"]+)"/.exec(await response.text()) ?? [];
  const [cookie = ""] = (response.headers.get("set-cookie") ?? "").split(";");
  return { url: link.replaceAll("&amp;", "&"), cookie };
}

async function comesBack(redirect: string, cookie: string): Promise<{ status: number; text: string }> {
  const response = await fetch(redirect, { headers: { cookie } });
  return { status: response.status, text: await response.text() };
}

/** A person of a workspace installs the app there. */
async function install(workspace: SimulatedWorkspace, approval?: Approval) {
  const { url, cookie } = await opens();
  return await comesBack(story.slack.approve(url, workspace, approval), cookie);
}

/** Resolves to the bot's message in a thread of a workspace, when its turn has ended. */
function answerIn(workspace: SimulatedWorkspace, channel: string, thread: string, index = 0) {
  return story.slack.waitFor(`answer ${index} in ${thread}`, () => {
    const said = workspace
      .transcriptOf(channel)
      .filter(({ author, thread: of }) => author === "Parley" && of === thread);
    return story.parley.assistant.pending() === 0 && said[index];
  });
}

const posts = new Set(["chat.postMessage", "chat.startStream"]);
const tokensOfPosts = () =>
  new Set(story.slack.calls.filter(({ method }) => posts.has(method)).map(({ token }) => token));

// Attack: An installation with another person's link, a link used twice, a code of another app; a
// token of one workspace used in another; data that stays when the app is removed.
describe("installing", () => {
  test("a workspace installs the app on its page, and is answered with a token of its own", async () => {
    const { slack, parley } = await begin();
    const workspace = slack.addWorkspace();
    const { status, text } = await install(workspace);
    expect(status).toBe(200);
    expect(text).toContain("Parley is installed");
    const ana = workspace.person("Ana");
    const root = ana.sends({ channel: ana.directMessages, text: "hello" });
    expect((await answerIn(workspace, ana.directMessages, root)).text).toBe("You said: hello");
    expect(tokensOfPosts()).toEqual(new Set([workspace.botToken]));
    expect(parley.lines.join("\n")).toContain("/slack/install");
    expect(await story.isKept(workspace.botToken)).toBe(false);
  });

  test("the first answer after a workspace loads is no resumed one, and looks nothing up", async () => {
    const { slack } = await begin();
    const workspace = slack.addWorkspace();
    await install(workspace);
    const ana = workspace.person("Ana");
    const root = ana.sends({ channel: ana.directMessages, text: "hello" });
    await answerIn(workspace, ana.directMessages, root);
    expect(slack.calls.filter(({ method }) => method === "conversations.replies")).toEqual([]);
  });

  test("its pages are in the language of the browser", async () => {
    await begin();
    const german = { headers: { "accept-language": "de-AT, en;q=0.5" } };
    const page = await (await fetch(`${story.parley.url}/slack/install`, german)).text();
    expect(page).toContain('<html lang="de">');
    expect(page).toContain("Parley zu Slack hinzufügen");
    const failed = await (
      await fetch(`${story.parley.url}/slack/oauth_redirect?error=access_denied`, german)
    ).text();
    expect(failed).toContain("Die Installation wurde in Slack abgebrochen");
    expect(failed).toContain("Neu beginnen");
  });

  test("a state is used once: again, from another browser, forged, or without its cookie it is refused in words", async () => {
    const { slack } = await begin();
    const workspace = slack.addWorkspace();
    const { url, cookie } = await opens();
    const redirect = slack.approve(url, workspace);
    expect((await comesBack(redirect, "")).text).toContain("opened in another browser");
    expect((await comesBack(redirect, cookie)).status).toBe(200);
    const replayed = await comesBack(slack.approve(url, workspace), cookie);
    expect(replayed.status).toBe(400);
    expect(replayed.text).toContain("used already");
    const forged = new URL(redirect);
    forged.searchParams.set("state", "A".repeat(22) + ".9999999999999." + "A".repeat(43));
    const name = cookie.split("=")[0];
    const state = forged.searchParams.get("state");
    expect((await comesBack(forged.href, `${name}=${state}`)).status).toBe(400);
    expect(story.logged.join("\n")).toContain("slack_oauth_invalid_state");
  });

  test("a code of another app, a cancelled installation and wrong credentials are said in words", async () => {
    const { slack } = await begin();
    const workspace = slack.addWorkspace();
    const other = await install(workspace, { ofOtherApp: true });
    expect(other.text).toContain("another app");
    const { url, cookie } = await opens();
    const cancelled = new URL(slack.approve(url, workspace));
    cancelled.searchParams.delete("code");
    cancelled.searchParams.set("error", "access_denied");
    expect((await comesBack(cancelled.href, cookie)).text).toContain("cancelled in Slack");
    slack.fail("oauth.v2.access", { error: "bad_client_secret" });
    const refused = await install(workspace);
    expect(refused.status).toBe(500);
    expect(refused.text).toContain("SLACK_CLIENT_SECRET");
  });

  test("an event of a workspace without the app is acknowledged, ignored and logged once", async () => {
    const { slack } = await begin();
    const ana = slack.person("Ana");
    for (const text of ["one", "two"]) ana.sends({ channel: ana.directMessages, text });
    await slack.waitFor("acknowledgements", () =>
      slack.deliveries.every(({ outcome }) => outcome === "acknowledged"),
    );
    expect(story.logged.filter((line) => line.includes("not installed: ignored"))).toHaveLength(1);
    expect(story.asked()).toEqual([]);
  });

  test("a workspace that granted too little is named in the log, and its people are told", async () => {
    const { slack } = await begin();
    const workspace = slack.addWorkspace();
    await install(workspace, { withoutScope: "files:read" });
    const ana = workspace.person("Ana");
    const file = { name: "picture.png", mediaType: "image/png", bytes: await fixture("picture.png") };
    const root = ana.sends({ channel: ana.directMessages, text: "what is this?", files: [file] });
    expect((await answerIn(workspace, ana.directMessages, root)).text).toContain("files:read");
    const told = story.logged.filter((line) => line.includes("lacks scopes"));
    expect(told).toHaveLength(1);
    expect(told[0]).toContain('"missing":["files:read"]');
    expect(told[0]).toContain(workspace.teamId);
  });
});

describe("two workspaces", () => {
  async function both() {
    const { slack } = await begin();
    const [first, second] = [slack.addWorkspace(), slack.addWorkspace()];
    await install(first);
    await install(second);
    const [ana, bo] = [first.person("Ana"), second.person("Bo")];
    return { slack, first, second, ana, bo };
  }

  test("at once: each is answered with its own token, commands, buttons and files included", async () => {
    const { first, second, ana, bo } = await both();
    const file = { name: "picture.png", mediaType: "image/png", bytes: await fixture("picture.png") };
    const [one, two] = [
      ana.sends({ channel: ana.directMessages, text: "of the first", files: [file] }),
      bo.sends({ channel: bo.directMessages, text: "of the second", files: [file] }),
    ];
    expect((await answerIn(first, ana.directMessages, one)).text).toContain("You said: of the first");
    expect((await answerIn(second, bo.directMessages, two)).text).toContain("You said: of the second");
    const asked = story.asked().map(([turn]) => turn!);
    for (const words of ["of the first", "of the second"]) {
      const { content } = asked.find((turn) => textOf(turn).includes(words)) ?? { content: "" };
      expect(JSON.stringify(content)).toContain("data:image/png;base64,");
    }
    for (const [workspace, person] of [
      [first, ana],
      [second, bo],
    ] as const) {
      const channel = workspace.channel("ideas", [person]);
      expect((await person.usesCommand("/models", "", { channel: channel.id })).kind).toBe("acknowledged");
      await story.slack.waitFor("the list", () =>
        channel.transcript().some(({ text }) => text.includes("test/whisper")),
      );
      const form = await person.usesCommand("/ask", "", { channel: channel.id });
      expect(form.kind).toBe("acknowledged");
      await person.submitsModal({ Prompt: `of ${person.name}` });
      const answer = await story.slack.waitFor("the answer", () =>
        channel
          .transcript()
          .find(
            ({ text, buttons }) =>
              text.includes(`of ${person.name}`) && buttons.some(({ label }) => label === "Details"),
          ),
      );
      expect((await person.clicks(answer, "Details", { channel: channel.id })).kind).toBe("acknowledged");
      await story.slack.waitFor("the details", () =>
        channel
          .transcript()
          .some(({ onlyFor, text }) => onlyFor === person.name && text.includes("test/chat-model")),
      );
    }
  });

  test("in people's threads each reads its own, with its own token, and speaks each person's language", async () => {
    const { slack, first, second, bo } = await both();
    for (const [workspace, person] of [
      [first, first.person("Ada", { locale: "de-DE" })],
      [second, bo],
    ] as const) {
      const channel = workspace.channel("ops", [person]);
      const root = person.sends({ channel: channel.id, text: `Down at ${person.name}` });
      person.sends({ channel: channel.id, thread: root, text: "why?", mentionBot: true });
      await answerIn(workspace, channel.id, root);
      const asked = story.asked().at(-1)!.map(textOf).join("\n");
      expect(asked).toContain(`> Down at ${person.name}`);
      expect(asked.match(/Down at/g)).toHaveLength(1);
      const { token } = slack.calls.findLast(({ method }) => method === "conversations.replies") ?? {};
      expect(token).toBe(workspace.botToken);
      const { buttons } = await slack.waitFor("the buttons", () =>
        channel.saidByBot(root).find((said) => said.buttons.some((button) => button.label === "Details")),
      );
      const label = person.name === "Ada" ? "Neu erzeugen" : "Regenerate";
      expect(buttons.map((button) => button.label)).toContain(label);
    }
  });

  test("when one removes the app, everything of it is erased and nothing of the other", async () => {
    const { slack, first, second, ana, bo } = await both();
    const one = ana.sends({ channel: ana.directMessages, text: "words of the first" });
    const two = bo.sends({ channel: bo.directMessages, text: "words of the second" });
    await answerIn(first, ana.directMessages, one);
    await answerIn(second, bo.directMessages, two);
    const kept = () =>
      Promise.all(
        [
          `slack:${first.teamId}:${ana.directMessages}:${one}`,
          `slack:${second.teamId}:${bo.directMessages}:${two}`,
        ].map((id) => story.parley.assistant.history.knows(id)),
      );
    expect(await kept()).toEqual([true, true]);
    first.uninstall();
    await slack.waitFor("the erasure", () => story.logged.some((line) => line.includes("is erased")));
    await slack.waitFor("acknowledgements", () =>
      first.deliveries.every(({ outcome }) => outcome === "acknowledged"),
    );
    expect(await kept()).toEqual([false, true]);
    expect(story.logged.filter((line) => /people deleted/.test(line))).toEqual([
      expect.stringContaining('"people":1'),
    ]);
    const again = bo.sends({ channel: bo.directMessages, thread: two, text: "still there?" });
    expect(again).not.toBe(two);
    expect((await answerIn(second, bo.directMessages, two, 1)).text).toBe("You said: still there?");
    ana.sends({ channel: ana.directMessages, text: "anybody?" });
    await slack.waitFor("the refusal", () =>
      story.logged.some((line) => line.includes("not installed: ignored")),
    );
  });

  test("an uninstallation that arrives after a new installation changes nothing", async () => {
    const { slack, first, ana } = await both();
    const root = ana.sends({ channel: ana.directMessages, text: "keep this" });
    await answerIn(first, ana.directMessages, root);
    slack.clock.advance(-60_000);
    first.sendEvent({ type: "app_uninstalled" });
    slack.clock.advance(60_000);
    await slack.waitFor("its acknowledgement", () =>
      first.deliveries.some(({ what, outcome }) => what === "app_uninstalled" && outcome === "acknowledged"),
    );
    ana.sends({ channel: ana.directMessages, thread: root, text: "and now?" });
    expect((await answerIn(first, ana.directMessages, root, 1)).text).toBe("You said: and now?");
  });
});

describe("tokens", () => {
  test("a token that expires soon is rotated once, and used from then on", async () => {
    const { slack } = await begin();
    const workspace = slack.addWorkspace();
    await install(workspace, { expiresInS: 3600 });
    const before = workspace.botToken;
    const people = ["Ana", "Bo", "Cy"].map((name) => workspace.person(name));
    const roots = people.map((person) => person.sends({ channel: person.directMessages, text: "hello" }));
    for (const [index, person] of people.entries())
      await answerIn(workspace, person.directMessages, roots[index] ?? "");
    const rotations = slack.calls.filter(({ args }) => args["grant_type"] === "refresh_token");
    expect(rotations.map(({ outcome }) => outcome)).toEqual(["ok"]);
    expect(workspace.botToken).not.toBe(before);
    expect(tokensOfPosts()).toEqual(new Set([workspace.botToken]));
  });

  test("where the rotation fails, the old token is used while Slack accepts it", async () => {
    const { slack } = await begin();
    const workspace = slack.addWorkspace();
    await install(workspace, { expiresInS: 3600 });
    slack.fail("oauth.v2.access", { error: "internal_error" });
    const ana = workspace.person("Ana");
    const root = ana.sends({ channel: ana.directMessages, text: "hello" });
    expect((await answerIn(workspace, ana.directMessages, root)).text).toBe("You said: hello");
    expect(story.logged.join("\n")).toContain("API call for token rotation");
  });

  test("an organisation installs the app once for all its workspaces, and removes it from all", async () => {
    const { slack } = await begin();
    const [first, second] = [
      slack.addWorkspace({ enterpriseId: "E0ORG" }),
      slack.addWorkspace({ enterpriseId: "E0ORG" }),
    ];
    expect((await install(first)).text).toContain("Simulated organisation");
    for (const workspace of [first, second]) {
      const ana = workspace.person("Ana");
      const root = ana.sends({ channel: ana.directMessages, text: "hello" });
      expect((await answerIn(workspace, ana.directMessages, root)).text).toBe("You said: hello");
    }
    first.uninstall();
    await slack.waitFor("both erasures", () =>
      [first, second].every(({ teamId }) =>
        story.logged.some((line) => line.includes("is erased") && line.includes(teamId)),
      ),
    );
  });
});
