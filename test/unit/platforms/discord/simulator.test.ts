import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { requireOperation } from "../../../simulators/discord/openapi.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../../simulators/discord/simulator.ts";
import type { Person, Use } from "../../../simulators/discord/people.ts";
import { sendRaw } from "../../../simulators/discord/send-raw.ts";

const generous = { limit: 1000, windowMs: 1000 };

// The simulator must not be more lenient than Discord. Both reject each of these.
describe("the simulated Discord", () => {
  let discord: DiscordSimulator;
  let ada: Person;
  let general: ReturnType<DiscordSimulator["channel"]>;
  beforeEach(async () => {
    discord = await createDiscordSimulator({ rateLimits: { messages: generous, webhooks: generous } });
    ada = discord.person("Ada");
    general = discord.channel("general");
  });
  afterEach(() => discord.close());

  const ask = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    sendRaw(discord, method, path, body, headers);
  const post = (body: unknown) => ask("POST", `/channels/${general.id}/messages`, body);

  const registerAsk = async (): Promise<void> => {
    const command = {
      name: "ask",
      description: "Ask",
      options: [{ type: 3, name: "prompt", description: "What" }],
    };
    expect((await ask("PUT", `/applications/${discord.botId}/commands`, [command])).status).toBe(200);
  };
  const useAsk = async (): Promise<Use> => {
    await registerAsk();
    return ada.usesCommand("ask", { prompt: "x" }, { channel: general });
  };
  const callback = (use: Use, body: unknown) =>
    ask("POST", `/interactions/${use.id}/${use.interaction.token}/callback`, body);
  const webhook = (use: Use, rest = "") => `/webhooks/${discord.botId}/${use.interaction.token}${rest}`;

  test("rejects bodies that do not match Discord's OpenAPI schema", async () => {
    const refused = await post({ content: "x", allowed_mentions: { parse: ["nobody"] } });
    expect(refused).toMatchObject({ status: 400, code: 50035 });
    expect(JSON.stringify(refused.body)).toContain("allowed_mentions");
  });

  test("does not start with a route that Discord's OpenAPI document does not check", () => {
    expect(() => requireOperation("/channels/{channel_id}", "GET")).not.toThrow();
    expect(() => requireOperation("/channels/{channel_id}/nowhere", "GET")).toThrow("make.ts");
  });

  test("requires a token and a valid user agent", async () => {
    expect(await ask("GET", "/users/@me", undefined, { authorization: "" })).toMatchObject({
      status: 401,
      code: 0,
    });
    expect(await ask("GET", "/users/@me", undefined, { authorization: "Bot wrong" })).toMatchObject({
      status: 401,
    });
    expect(await ask("GET", "/users/@me", undefined, { "user-agent": "node" })).toMatchObject({
      status: 403,
    });
    expect(await ask("GET", "/users/@me")).toMatchObject({ status: 200, body: { id: discord.botId } });
    expect(await ask("GET", "/nowhere")).toMatchObject({ status: 404 });
  });

  test("rejects messages above its limits", async () => {
    expect(await post({ content: "x".repeat(2000) })).toMatchObject({ status: 200 });
    expect(await post({ content: "x".repeat(2001) })).toMatchObject({ status: 400, code: 50035 });
    expect(await post({ content: "  " })).toMatchObject({ status: 400, code: 50006 });
    expect(await post({ content: "x", enforce_nonce: true })).toMatchObject({ code: 50035 });
    expect(await post({ embeds: [{ description: "x".repeat(4097) }] })).toMatchObject({ code: 50035 });
    const button = { type: 2, style: 2, label: "x", custom_id: "c".repeat(101) };
    expect(await post({ content: "x", components: [{ type: 1, components: [button] }] })).toMatchObject({
      code: 50035,
    });
    const twin = { type: 2, style: 2, label: "x", custom_id: "c" };
    expect(await post({ content: "x", components: [{ type: 1, components: [twin, twin] }] })).toMatchObject({
      code: 50035,
    });
  });

  test("rejects files above their limits and keeps alt texts", async () => {
    const form = (sizes: number[]) => {
      const data = new FormData();
      for (const [index, size] of sizes.entries())
        data.append(`files[${index}]`, new Blob([new Uint8Array(size)]), `f${index}.png`);
      data.append("payload_json", JSON.stringify({ attachments: [{ id: "0", description: "a cat" }] }));
      return data;
    };
    expect(await post(form([10 * 1024 * 1024 + 1]))).toMatchObject({ status: 413, code: 40005 });
    expect(await post(form(Array.from({ length: 11 }, () => 1)))).toMatchObject({ code: 50035 });
    expect(await post(form([3]))).toMatchObject({ status: 200 });
    expect(general.fromBot()[0]?.files).toMatchObject([{ name: "f0.png", altText: "a cat" }]);
  });

  test("returns 404 for unknown channels and messages", async () => {
    expect(await ask("POST", "/channels/123456789012345678/messages", { content: "x" })).toMatchObject({
      code: 10003,
    });
    expect(
      await ask("PATCH", `/channels/${general.id}/messages/123456789012345678`, { content: "x" }),
    ).toMatchObject({
      code: 10008,
    });
    const theirs = ada.sends({ channel: general, text: "mine" });
    expect(
      await ask("PATCH", `/channels/${general.id}/messages/${theirs.id}`, { content: "x" }),
    ).toMatchObject({
      code: 50005,
    });
    expect(
      await post({ content: "x", message_reference: { message_id: "123456789012345678" } }),
    ).toMatchObject({ code: 50035 });
  });

  test("returns the same message for an enforced nonce", async () => {
    const first = await post({ content: "once", nonce: "n1", enforce_nonce: true });
    const second = await post({ content: "twice", nonce: "n1", enforce_nonce: true });
    expect(second.body["id"]).toBe(first.body["id"]);
    expect(general.fromBot()).toHaveLength(1);
  });

  test("notifies everyone mentioned, unless allowed_mentions says otherwise", async () => {
    await post({ content: `@everyone <@${ada.id}>` });
    await post({ content: `@everyone <@${ada.id}>`, allowed_mentions: { parse: [] } });
    expect(general.fromBot().map((message) => message.pings)).toEqual([["everyone", ada.id], []]);
  });

  test("rate limits, with headers", async () => {
    await discord.close();
    discord = await createDiscordSimulator();
    general = discord.channel("general");
    const answers = [];
    for (let index = 0; index < 6; index += 1) answers.push(await post({ content: `${index}` }));
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 200, 200, 429]);
    expect(answers[0]?.headers.get("x-ratelimit-remaining")).toBe("4");
    expect(Number(answers[5]?.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(answers[5]?.body).toMatchObject({ global: false });
  });

  test("checks permissions", async () => {
    general.deny("SEND_MESSAGES");
    expect(await post({ content: "x" })).toMatchObject({ status: 403, code: 50013 });
    general.deny("VIEW_CHANNEL");
    expect(await post({ content: "x" })).toMatchObject({ status: 403, code: 50001 });
  });

  test("begins a thread that was opened from a message with an entry that refers to it", async () => {
    const asked = ada.sends({ channel: general, text: "x" });
    const thread = discord.thread(general, ada, { from: asked });
    const inside = ada.sends({ channel: thread, text: "y" });
    expect(thread.id).toBe(asked.id);
    const path = `/channels/${thread.id}/messages`;
    expect(await ask("GET", `${path}?before=${inside.id}`)).toMatchObject({
      status: 200,
      body: [{ type: 21, content: "", referenced_message: { id: asked.id, content: "x" } }],
    });
    // This is no error, but there are no messages then.
    thread.deny("READ_MESSAGE_HISTORY");
    expect(await ask("GET", path)).toMatchObject({ status: 200, body: [] });
  });

  test("opens one thread a message, in text channels, with a name", async () => {
    const asked = ada.sends({ channel: general, text: "x" });
    const path = `/channels/${general.id}/messages/${asked.id}/threads`;
    expect(await ask("POST", path, { name: "" })).toMatchObject({ code: 50035 });
    expect(await ask("POST", path, { name: "x", auto_archive_duration: 5 })).toMatchObject({ code: 50035 });
    expect(await ask("POST", path, { name: "x" })).toMatchObject({
      status: 201,
      body: { id: asked.id, owner_id: discord.botId },
    });
    expect(await ask("POST", path, { name: "x" })).toMatchObject({ status: 400, code: 160004 });
    const inside = ada.sends({ channel: { id: asked.id }, text: "y" });
    expect(
      await ask("POST", `/channels/${asked.id}/messages/${inside.id}/threads`, { name: "x" }),
    ).toMatchObject({
      code: 50024,
    });
    discord.handle(asked.id).archive({ locked: true });
    expect(await ask("POST", `/channels/${asked.id}/messages`, { content: "x" })).toMatchObject({
      code: 160005,
    });
  });

  test("accepts one acknowledgement, within three seconds, with the right token", async () => {
    const use = await useAsk();
    expect(await ask("POST", `/interactions/${use.id}/wrong/callback`, { type: 5 })).toMatchObject({
      code: 10062,
    });
    expect(await ask("PATCH", webhook(use, "/messages/@original"), { content: "x" })).toMatchObject({
      code: 10015,
    });
    expect(await callback(use, { type: 6 })).toMatchObject({ code: 50035 });
    expect(await callback(use, { type: 5 })).toMatchObject({ status: 204 });
    expect(await callback(use, { type: 5 })).toMatchObject({ status: 400, code: 40060 });
    const late = await useAsk();
    discord.advance(3001);
    expect(await callback(late, { type: 5 })).toMatchObject({ status: 404, code: 10062 });
    expect(late.state()).toBe("failed");
  });

  test("expires an interaction's token after 15 minutes", async () => {
    const use = await useAsk();
    await callback(use, { type: 5 });
    expect(await ask("PATCH", webhook(use, "/messages/@original"), { content: "x" })).toMatchObject({
      status: 200,
    });
    discord.advance(15 * 60 * 1000 + 1);
    expect(await ask("PATCH", webhook(use, "/messages/@original"), { content: "y" })).toMatchObject({
      status: 401,
      code: 50027,
    });
  });

  test("replaces the placeholder with the first follow-up after a defer, with its visibility", async () => {
    const use = await useAsk();
    await callback(use, { type: 5, data: { flags: 64 } });
    await ask("POST", webhook(use), { content: "one" });
    await ask("POST", webhook(use), { content: "two" });
    expect(general.fromBot()).toMatchObject([
      { text: "one", isEphemeral: true },
      { text: "two", isEphemeral: false },
    ]);
    expect(await ask("GET", `/channels/${general.id}/messages/${general.fromBot()[0]!.id}`)).toMatchObject({
      code: 10008,
    });
  });

  test("reads members of the bot's server alone", async () => {
    const { guild } = discord.world;
    const eve = discord.person("Eve", { isMember: false });
    const read = (guildId: string, userId: string) => ask("GET", `/guilds/${guildId}/members/${userId}`);
    discord.give(ada, discord.role("staff"));
    expect((await read(guild.id, ada.id)).body["roles"]).toHaveLength(1);
    expect(await read(guild.id, eve.id)).toMatchObject({ status: 404, code: 10007 });
    expect(await read(guild.id, discord.world.nextId())).toMatchObject({ status: 404, code: 10013 });
    expect(await read(discord.world.nextId(), ada.id)).toMatchObject({ status: 404, code: 10004 });
    discord.leave(ada);
    expect(await read(guild.id, ada.id)).toMatchObject({ status: 404, code: 10007 });
    discord.removeGuild();
    expect(await read(guild.id, ada.id)).toMatchObject({ status: 403, code: 50001 });
  });

  test("delivers direct messages only to people who take them", async () => {
    const eve = discord.person("Eve", { isMember: false });
    const send = async (person: Person) =>
      ask("POST", `/channels/${discord.directMessages(person).id}/messages`, { content: "hi" });
    expect((await send(ada)).status).toBe(200);
    expect(await send(eve)).toMatchObject({ status: 403, code: 50278 });
    eve.sends({ channel: discord.directMessages(eve), text: "hello" });
    expect((await send(eve)).status).toBe(200);
    discord.closeDirectMessages(ada);
    expect(await send(ada)).toMatchObject({ status: 403, code: 50007 });
  });

  test("shows the bot nothing of a server that it is not in, and people only theirs", async () => {
    const eve = discord.person("Eve", { isMember: false });
    expect(() => eve.sends({ channel: general, text: "hi" })).toThrow("not a member");
    const elsewhere = discord.channelElsewhere("elsewhere");
    expect(await ask("GET", `/channels/${elsewhere.id}`)).toMatchObject({ status: 403, code: 50001 });
  });

  test("rejects invalid commands", async () => {
    const put = (...commands: unknown[]) => ask("PUT", `/applications/${discord.botId}/commands`, commands);
    const option = (name: string, required = false) => ({ type: 3, name, description: "x", required });
    expect(await put({ name: "Ask", description: "x" })).toMatchObject({ code: 50035 });
    expect(await put({ name: "ask", description: "" })).toMatchObject({ code: 50035 });
    expect(await put({ name: "ask", description: "x".repeat(101) })).toMatchObject({ code: 50035 });
    expect(await put({ name: "ask", description: "x" }, { name: "ask", description: "y" })).toMatchObject({
      code: 50035,
    });
    expect(
      await put({ name: "ask", description: "x", options: [option("a"), option("b", true)] }),
    ).toMatchObject({
      code: 50035,
    });
    expect(await put({ name: "Ask about this", type: 3, description: "x" })).toMatchObject({ code: 50035 });
    expect(await put({ name: "Ask about this", type: 3 })).toMatchObject({ status: 200 });
  });

  test("throws where Discord's client would not let a person act", async () => {
    await registerAsk();
    expect(() => ada.usesCommand("nope", {}, { channel: general })).toThrow("no command");
    expect(() => ada.usesCommand("ask", { other: "x" }, { channel: general })).toThrow("no option");
    expect(() => ada.usesCommand("ask", { prompt: 3 }, { channel: general })).toThrow("takes a string");
    expect(() => ada.sends({ channel: general, text: "x".repeat(2001) })).toThrow("too long");
    expect(() => ada.types("ask", "prompt", "x", { channel: general })).toThrow("does not complete");
  });

  test("serves attachments at signed URLs that expire", async () => {
    const sent = ada.sends({ channel: general, files: [{ name: "a.txt", bytes: Buffer.from("hello") }] });
    const { body } = await ask("GET", `/channels/${general.id}/messages/${sent.id}`);
    const [{ url }] = body["attachments"] as [{ url: string }];
    expect(await (await fetch(url)).text()).toBe("hello");
    expect((await fetch(url.split("?")[0]!)).status).toBe(404);
    expect((await fetch(url.replace(/ex=[0-9a-f]+/, "ex=7fffffff"))).status).toBe(404);
    discord.advance(25 * 3600 * 1000);
    expect((await fetch(url)).status).toBe(404);
  });
});
