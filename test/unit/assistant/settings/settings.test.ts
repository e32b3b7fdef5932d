import { afterEach, beforeEach, describe, expect, it, test, vi } from "vitest";
import { toSpokenLanguage } from "../../../../src/assistant/settings/settings-reader.ts";
import type { Actor } from "../../../../src/core/access.ts";
import type { CommandCall, Origin } from "../../../../src/core/events.ts";
import type { Reservation } from "../../../../src/core/spending.ts";
import { createWorld, type World } from "../../../support/assistant-world.ts";
import { call, message, said } from "../../../support/fakes.ts";

describe("layers", () => {
  let world: World;
  const models = ["chatty", "clever", "quick"].map((id) => ({ id, capabilities: { chats: true } }));

  beforeEach(async () => {
    world = await createWorld({ models });
  });

  afterEach(async () => {
    await world.close();
  });

  const inChannel: Origin = {
    user: "fake:user:ada",
    server: "fake:guild:1",
    channel: "fake:channel:1",
    roles: ["fake:role:staff"],
    isMember: true,
    isManager: false,
  };
  const manager: Origin = { ...inChannel, user: "fake:user:mia", isManager: true };
  const ada = { id: "fake:ada", name: "Ada" };
  const mia = { id: "fake:mia", name: "Mia" };

  /** Uses `/settings` and returns what the caller reads. */
  async function settings(options: CommandCall["options"], more: Partial<CommandCall> = {}): Promise<string> {
    await world.answered(
      call("settings", options, { origin: inChannel, isPrivate: true, inConversation: true, ...more }),
    );
    const reply = world.platform.replies.at(-1);
    return reply?.failure?.text ?? reply?.text ?? "";
  }

  const asManager = { origin: manager, author: mia };

  async function ask(text: string, more: Parameters<typeof message>[1] = {}): Promise<string> {
    await world.ask(text, { origin: inChannel, ...more });
    return world.gateway.requests.at(-1)?.model ?? "none";
  }

  describe("the layers of settings", () => {
    it("a channel's wins over its server's, and another channel keeps the server's", async () => {
      await settings({ name: "chat-model", value: "quick", for: "server" }, asManager);
      await settings({ name: "chat-model", value: "clever", for: "channel" }, asManager);
      expect(await ask("one")).toBe("clever");
      const elsewhere = { ...inChannel, channel: "fake:channel:2" };
      expect(await ask("two", { origin: elsewhere, conversationId: "fake:c9" })).toBe("quick");
    });

    it("the model of /chat is the conversation's", async () => {
      await world.store.conversations.saveSettings("fake:c1", { model: "clever" });
      await settings({ name: "chat-model", value: "quick", for: "me" });
      expect(await ask("one")).toBe("clever");
      expect(await settings({ name: "chat-model" })).toContain("- this conversation: `clever`");
      await settings({ name: "chat-model", value: "default", for: "here" });
      expect(await ask("two")).toBe("quick");
    });

    it("a model that is gone is replaced, and the answer says so", async () => {
      await world.store.settings.change("fake:channel:1", { "chat-model": "retired" });
      expect(await ask("one")).toBe("chatty");
      expect(world.platform.replies.at(-1)?.notices).toEqual([
        "There is no model `retired`. It is in the settings of this channel, so `chatty` was used.",
      ]);
    });

    it("another process's change is seen at once", async () => {
      const other = world.restart();
      expect(await ask("one")).toBe("chatty");
      await other.receive(
        call(
          "settings",
          { name: "chat-model", value: "quick" },
          { origin: inChannel, isPrivate: true, inConversation: true },
        ),
      );
      await vi.waitFor(() => expect(other.pending()).toBe(0));
      expect(await ask("two")).toBe("quick");
    });
  });

  describe("the effect of settings", () => {
    it("instructions of every layer add up, and /settings shows them as the model gets them", async () => {
      const layers = [
        ["channel", "Talk like a pirate."],
        ["me", "I read ```code```."],
        ["here", "Be kind."],
        ["server", "You love cats."],
      ] as const;
      for (const [layer, value] of layers)
        await settings({ name: "system-prompt", value, for: layer }, asManager);
      await ask("hello", asManager);
      const prompt = [
        "Be brief.",
        "Instructions for this server:\nYou love cats.",
        "Instructions for this channel:\nTalk like a pirate.",
        "Instructions for this conversation:\nBe kind.",
        "Instructions of the person who asks:\nI read ```code```.",
      ].join("\n\n");
      expect(said(world.gateway.requests.at(-1))[0]).toBe(`system: ${prompt}`);
      const shown = await settings({ name: "system-prompt" }, asManager);
      expect(shown).toContain(`The model gets this:\n\n\`\`\`\`\n${prompt}\n\`\`\`\``);
    });

    it("temperature, length, language and instructions reach the model", async () => {
      await settings({ name: "temperature", value: "0.2" });
      await settings({ name: "answer-length", value: "long" });
      await settings({ name: "language", value: "Deutsch" });
      await settings({ name: "system-prompt", value: "You love cats." }, { ...asManager, options: {} });
      await settings({ name: "system-prompt", value: "Talk like a pirate.", for: "channel" }, asManager);
      await ask("hello");
      const request = world.gateway.requests.at(-1);
      expect(request).toMatchObject({ temperature: 0.2, maxTokens: 4096 });
      const answer = (await world.history.history("fake:c1", { maxMessages: 9 })).at(-1)!;
      expect(answer.receipt).toMatchObject({ temperature: 0.2, maxTokens: 4096 });
      expect(said(request)[0]).toBe(
        [
          "system: Be brief.",
          "Instructions for this channel:\nTalk like a pirate.",
          "Answer in detail: explain, and give examples where they help.",
          "Always answer in German, whatever language you are asked in.",
        ].join("\n\n"),
      );
    });

    it("when and where a channel is answered is known to the platforms", async () => {
      expect(await world.assistant.placeSettings(inChannel)).toEqual({
        answerTo: "addressed",
        answerIn: "thread",
      });
      await settings({ name: "answer-to", value: "all" }, asManager);
      await settings({ name: "answer-in", value: "channel", for: "server" }, asManager);
      expect(await world.assistant.placeSettings(inChannel)).toEqual({
        answerTo: "all",
        answerIn: "channel",
      });
      expect(await world.assistant.placeSettings({})).toEqual({
        answerTo: "addressed",
        answerIn: "thread",
      });
    });

    it("who may use it here refuses everybody else before anything is kept, but never the managers", async () => {
      await settings({ name: "who-may-use", value: "fake:role:board", for: "channel" }, asManager);
      await expect(world.assistant.receive(message("hi", { origin: inChannel }))).rejects.toMatchObject({
        code: "access-denied",
      });
      expect(await world.store.inbox.open()).toEqual([]);
      const by = { platform: "fake", author: ada, origin: inChannel };
      await expect(world.assistant.press({ kind: "retry", key: "fake:1" }, by)).rejects.toMatchObject({
        code: "access-denied",
      });
      await expect(world.assistant.press({ kind: "stop", key: "fake:c1" }, by)).rejects.toMatchObject({
        code: "access-denied",
      });
      const details = world.assistant.press({ kind: "details", key: "fake:c1 fake:1/answer" }, by);
      await expect(details).rejects.toMatchObject({ code: "access-denied" });
      expect(await ask("hi", { origin: manager, author: mia })).toBe("chatty");
      expect(await ask("hi", { origin: { ...inChannel, roles: ["fake:role:board"] } })).toBe("chatty");
    });
  });

  describe("the budgets of a place", () => {
    it("limit what is spent there, and the smallest wins for a person", async () => {
      await settings({ name: "place-budget", value: "0", for: "channel" }, asManager);
      const one = world.assistant.receive(message("one", { origin: inChannel }));
      await expect(one).rejects.toMatchObject({ code: "over-budget", detail: { scope: "place" } });
      const elsewhere = { ...inChannel, channel: "fake:channel:2" };
      expect(await ask("two", { origin: elsewhere, conversationId: "fake:c5" })).toBe("chatty");
      await settings({ name: "person-budget", value: "0", for: "server" }, asManager);
      const three = world.assistant.receive(
        message("three", { origin: elsewhere, conversationId: "fake:c6" }),
      );
      await expect(three).rejects.toMatchObject({ code: "over-budget", detail: { scope: "person" } });
    });
  });

  describe("the budgets of roles", () => {
    it("are terms with an amount and a period, for a server with roles", async () => {
      const set = (value: string, origin = asManager) =>
        settings({ name: "role-budgets", value, for: "server" }, origin);
      expect(await set("fake:role:staff=5/day, fake:role:staff=100.50/month")).toBe(
        "Saved for this server. In force here now: **role-budgets** is fake:role:staff=5/day, fake:role:staff=100.50/month (from this server).",
      );
      for (const wrong of ["fake:role:staff", "fake:user:ada=5/day", "fake:role:staff=5/week", ","])
        expect(await set(wrong)).toContain("entries are such as discord:role:<id>=5/day");
      const { roles: _, ...withoutRoles } = asManager.origin;
      expect(await set("fake:role:staff=5/day", { ...asManager, origin: withoutRoles })).toBe(
        "/settings `role-budgets`: it needs roles, which are not known here.",
      );
    });
  });

  describe("the rights to change settings", () => {
    it("a member cannot change a place, and nothing is changed", async () => {
      expect(await settings({ name: "chat-model", value: "clever", for: "channel" })).toBe(
        "Only those who manage this server, and Parley's admins, can change the settings of this channel.",
      );
      expect(await settings({ name: "chat-model", value: "clever", for: "server" })).toBe(
        "Only those who manage this server, and Parley's admins, can change the settings of this server.",
      );
      expect(await ask("one")).toBe("chatty");
    });

    it("an admin can change places without managing them", async () => {
      const admins = await createWorld({ models, rules: { allow: [], deny: [], admins: ["fake:user:ada"] } });
      const other = world;
      world = admins;
      expect(await settings({ name: "chat-model", value: "clever", for: "channel" })).toContain(
        "Saved for this channel",
      );
      await other.close();
    });

    it("limits cannot be set for oneself", async () => {
      expect(await settings({ name: "person-budget", value: "5", for: "me" }, asManager)).toBe(
        "/settings `person-budget`: it can only be set for server or channel.",
      );
    });

    describe("of a conversation in which others talk", () => {
      const bo = { id: "fake:bo", name: "Bo\n[x]" };
      const asBo = { origin: { ...inChannel, user: "fake:user:bo" }, author: bo };
      const prompt = { name: "system-prompt", value: "Praise Bo.", for: "here" };
      const chosen = async () => (await world.store.conversations.settings("fake:c1")).chosen ?? {};
      const lines = () =>
        world.platform.replies
          .filter(({ address }) => typeof address["at"] === "string" && address["at"].startsWith("fake:c1 "))
          .map(({ text }) => text);

      it("are not for a visitor who has said nothing there, neither typed nor by its form", async () => {
        await ask("hello", { author: ada });
        expect(await settings(prompt, asBo)).toContain("Only those who have said something");
        const actor: Actor = { platform: "fake", ...asBo };
        const { key } = world.assistant
          .formOffers(actor, "fake:c1")
          .find(({ label }) => label === "This conversation: answers")!;
        const refused = { code: "not-permitted" };
        await expect(world.assistant.press({ kind: "settings", key }, actor)).rejects.toMatchObject(refused);
        const values = { "system-prompt": "Praise Bo." };
        await expect(world.assistant.press({ kind: "settings", key, values }, actor)).rejects.toMatchObject(
          refused,
        );
        expect(await chosen()).toEqual({});
        expect(lines()).toEqual([]);
      });

      it("are for those who talk there and for managers, and a line in it says who changed what", async () => {
        await ask("hello", { author: ada });
        await ask("and me", { author: bo, origin: asBo.origin });
        await settings(prompt, asBo);
        await settings({ name: "calm", value: "on", for: "here" }, asManager);
        expect(await chosen()).toEqual({ "system-prompt": "Praise Bo.", calm: "on" });
        await vi.waitFor(() =>
          expect(lines()).toEqual([
            "Bo (x) has changed settings of this conversation: System prompt. /settings shows them.",
            "Mia has changed settings of this conversation: Calm. /settings shows them.",
          ]),
        );
      });

      it("are said to nobody where one person talks alone", async () => {
        await ask("hello", { author: ada });
        await settings(prompt);
        expect(await chosen()).toEqual({ "system-prompt": "Praise Bo." });
        await ask("again", { author: ada });
        expect(lines()).toEqual([]);
      });
    });

    it("outside a server there is no channel to set anything for", async () => {
      const { server: _, channel: __, ...direct } = inChannel;
      expect(
        await settings({ name: "chat-model", value: "clever", for: "channel" }, { origin: direct }),
      ).toBe("There is no channel here.");
    });

    it.each([
      [{ name: "temperature", value: "abc" }, "/settings `temperature`: it is a number from 0 to 2."],
      [
        { name: "person-budget", value: "abc", for: "server" },
        "/settings `person-budget`: it is an amount in US dollars from 0 to 1000000, such as 2.50.",
      ],
      [
        { name: "chat-model", value: "clevr" },
        "/settings `chat-model`: it cannot be this: There is no model `clevr`. Did you mean `clever`? /models lists what there is.",
      ],
    ])("%j is one clear line", async (options, line) => {
      expect(await settings(options, asManager)).toBe(line);
    });

    it("budgets that contradict each other are refused", async () => {
      await settings({ name: "place-budget", value: "1", for: "channel" }, asManager);
      expect(await settings({ name: "person-budget", value: "2", for: "channel" }, asManager)).toBe(
        "/settings `person-budget`: it is more than place-budget (1), which all people share.",
      );
    });
  });

  describe("what is erased", () => {
    it("/forget everywhere removes a person's settings", async () => {
      await settings({ name: "chat-model", value: "clever", for: "me" });
      await world.answered(call("forget", { where: "everywhere", confirm: true }, { isPrivate: true }));
      expect(await world.store.settings.read(["fake:ada"])).toEqual([{}]);
      expect(await ask("one")).toBe("chatty");
    });

    it("/forget says so where there is nothing else of a person", async () => {
      await settings({ name: "chat-model", value: "clever", for: "me" });
      await world.answered(
        call("forget", { where: "everywhere" }, { isPrivate: true, conversationId: "fake:c7" }),
      );
      expect(world.platform.replies.at(-1)).toMatchObject({ confirm: { label: "Remove" } });
      expect(world.platform.replies.at(-1)?.text).toContain("0 messages and 1 setting in all");
    });

    it("what is set and counted for people goes with their workspace", async () => {
      await settings({ name: "chat-model", value: "clever", for: "me" });
      const { spending } = world.store;
      const reservation = (await spending.reserve(0, { budgets: [], now: world.clock.now() })) as Reservation;
      const labels = { personId: "fake:ada", model: "clever", operation: "chat" } as const;
      const used = { labels, usage: { costUsd: 1, isEstimated: false }, scopes: [] };
      await spending.settle(reservation, used, world.clock.now());
      const days = { fromDay: reservation.day, toDay: reservation.day };
      const counted = async () => (await world.store.spending.usage(days)).map(({ personId }) => personId);
      expect(await counted()).toContain("fake:ada");
      await world.assistant.changed({ kind: "delete-people", idPrefix: "other:" });
      expect(await counted()).toContain("fake:ada");
      await world.assistant.changed({ kind: "delete-people", idPrefix: "fake:" });
      expect(await counted()).toEqual([]);
      expect(await world.store.settings.read(["fake:ada"])).toEqual([{}]);
    });

    it("a deleted channel's settings go with it", async () => {
      await settings({ name: "chat-model", value: "clever", for: "channel" }, asManager);
      await world.assistant.changed({ kind: "delete-place", place: "fake:channel:1" });
      expect(await world.store.settings.read(["fake:channel:1"])).toEqual([{}]);
      expect(await ask("one")).toBe("chatty");
    });
  });

  describe("the forms of settings", () => {
    const caller: Actor = { platform: "fake", author: ada, origin: inChannel };
    const managing: Actor = { platform: "fake", author: mia, origin: manager };
    const offersOf = (who: Actor) => world.assistant.formOffers(who, "fake:c1");
    const keyOf = (who: Actor, label: string) =>
      offersOf(who).find((offer) => offer.label === label)?.key ?? "";

    it("are offered for what somebody may change", () => {
      expect(offersOf(caller).map(({ label }) => label)).toEqual([
        "For me: models",
        "For me: answers",
        "This conversation: models",
        "This conversation: answers",
      ]);
      expect(offersOf(managing).map(({ label }) => label)).toEqual([
        "For me: models",
        "For me: answers",
        "This conversation: models",
        "This conversation: answers",
        "This channel: models",
        "This channel: answers",
        "This channel: when, where and who",
        "This channel: budgets",
        "This server: models",
        "This server: answers",
        "This server: when, where and who",
        "This server: budgets",
      ]);
      for (const { key, label } of offersOf(managing)) {
        expect(key.length).toBeLessThanOrEqual(100);
        expect(label.length).toBeLessThanOrEqual(75);
      }
    });

    it("show what the layer holds, and what applies otherwise", async () => {
      await settings({ name: "chat-model", value: "clever", for: "channel" }, asManager);
      const key = keyOf(caller, "For me: models");
      const opened = await world.assistant.press({ kind: "settings", key }, caller);
      const form = opened.kind === "form" ? opened.form : undefined;
      expect(form).toMatchObject({ title: "Models" });
      expect(form?.fields[0]).toMatchObject({
        name: "chat-model",
        label: "Chat model",
        value: "",
        placeholder: "clever (from this channel)",
        options: models.map(({ id }) => ({ value: id, label: id })),
      });
    });

    it("save all fields, or say at each what is wrong and save nothing", async () => {
      const key = keyOf(managing, "This channel: budgets");
      expect(
        await world.assistant.press(
          {
            kind: "settings",
            key,
            values: {
              "place-budget": "9",
              "person-budget": "abc",
            },
          },
          managing,
        ),
      ).toEqual({
        kind: "problems",
        problems: {
          "person-budget": "Person budget is an amount in US dollars from 0 to 1000000, such as 2.50.",
        },
      });
      expect(await world.store.settings.read(["fake:channel:1"])).toEqual([{}]);
      const saved = await world.assistant.press(
        {
          kind: "settings",
          key,
          values: {
            "place-budget": "9",
            "person-budget": "2",
          },
        },
        managing,
      );
      expect(saved).toMatchObject({ kind: "told" });
      expect(await world.store.settings.read(["fake:channel:1"])).toEqual([
        { "place-budget": 9, "person-budget": 2 },
      ]);
      await world.assistant.press(
        { kind: "settings", key, values: { "place-budget": "", "person-budget": "2.00" } },
        managing,
      );
      expect(await world.store.settings.read(["fake:channel:1"])).toEqual([{ "person-budget": 2 }]);
    });

    it("are refused to members, also with a manager's key", async () => {
      const key = keyOf(managing, "This server: models");
      await expect(world.assistant.press({ kind: "settings", key }, caller)).rejects.toMatchObject({
        code: "not-permitted",
      });
      await expect(
        world.assistant.press({ kind: "settings", key, values: { "chat-model": "quick" } }, caller),
      ).rejects.toMatchObject({
        code: "not-permitted",
      });
      await expect(
        world.assistant.press({ kind: "settings", key: "settings/x/y/" }, caller),
      ).rejects.toMatchObject({
        code: "not-permitted",
      });
    });

    it("can be saved although a model that stays is gone", async () => {
      await world.store.settings.change("fake:ada", { "chat-model": "retired" });
      const key = keyOf(caller, "For me: models");
      expect(
        await world.assistant.press(
          { kind: "settings", key, values: { "chat-model": "retired", "image-model": "" } },
          caller,
        ),
      ).toMatchObject({ kind: "told" });
    });
  });
});

describe("the spoken language", () => {
  test.each([
    [{ value: "German", from: "person" }, "de"],
    [{ value: "Japanese", from: "conversation" }, "ja"],
    [{ value: "German", from: "server" }, undefined],
    [{ value: "Italian", from: "person" }, undefined],
    [{ value: "automatic", from: "person" }, undefined],
    [undefined, undefined],
  ] as const)("the setting %j speaks %s", (language, expected) => {
    expect(toSpokenLanguage(language === undefined ? {} : { language })).toBe(expected);
  });
});
