import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../src/core/errors.ts";
import type { Reply, ReplyFile, ReplyHooks } from "../../src/core/reply.ts";
import type { ReplyAction } from "../../src/core/press.ts";
import type { ReplyAddress } from "../../src/core/events.ts";

/** What a person sees of one reply. */
interface SeenReply {
  /** All its text in order, notices included, as plain text or as the platform's markup. */
  readonly text: string;
  /** Whether a sign of work without words is shown. */
  readonly isWorking?: boolean;
  readonly files: readonly { readonly name: string; readonly altText: string }[];
  /** The key of each Retry button. */
  readonly retryKeys: readonly string[];
  /** The label and the key of each confirm button. */
  readonly confirms: readonly { readonly label: string; readonly key: string }[];
  /** The kind and the key of each button below the answer. */
  readonly actions: readonly ReplyAction[];
}

/** Where one reply can be shown on a platform, made anew for each test. */
export interface ReplySubject {
  /** Opens the reply at a new address, or at the one that an earlier reply saved. */
  open(hooks: ReplyHooks, saved: ReplyAddress | undefined): Reply;
  seen(): SeenReply | Promise<SeenReply>;
  close(): Promise<void>;
}

/** What a reply cannot do there. */
export interface ReplyTraits {
  /** The reply is seen only at its end. */
  readonly isNotStreamed?: boolean;
  /** Posted messages cannot be edited. */
  readonly isNotEditable?: boolean;
  /** Its sign of work has no words. */
  readonly hasWordlessSign?: boolean;
  /** It shows no buttons. */
  readonly hasNoButtons?: boolean;
  /** It shows no files. */
  readonly hasNoFiles?: boolean;
}

const file: ReplyFile = {
  name: "picture.png",
  mediaType: "image/png",
  // This is the smallest PNG, with one black pixel.
  bytes: new Uint8Array(
    Buffer.from(
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==",
      "base64",
    ),
  ),
  altText: "one black pixel",
};

const lines = (count: number) => Array.from({ length: count }, (_, index) => `line number ${index} of many`);

/** Describes every testable promise of {@link Reply}, whatever platform shows it. */
export function describeReply(
  name: string,
  setUp: () => ReplySubject | Promise<ReplySubject>,
  {
    isNotStreamed = false,
    isNotEditable = false,
    hasWordlessSign = false,
    hasNoButtons = false,
    hasNoFiles = false,
  }: ReplyTraits = {},
): void {
  describe(`${name}: reply contract`, () => {
    let subject: ReplySubject;
    let saved: ReplyAddress | undefined;
    const hooks: ReplyHooks = {
      saveAddress: (address) => {
        // Addresses pass through JSON, as through a store.
        saved = JSON.parse(JSON.stringify(address)) as ReplyAddress;
        return Promise.resolve();
      },
    };
    const open = (at?: ReplyAddress) => subject.open({ ...hooks, isResumed: at !== undefined }, at);
    const textSeen = async () => (await subject.seen()).text;
    const eventually = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 10_000, interval: 20 });

    beforeEach(async () => {
      saved = undefined;
      subject = await setUp();
    });
    afterEach(() => subject.close());

    it("has saved its address when it is shown", async () => {
      const reply = open();
      await reply.show();
      expect(saved).toBeDefined();
      await reply.finish();
    });

    it.skipIf(isNotStreamed)("shows text while it is written, the latest at last", async () => {
      const reply = open();
      await reply.show();
      reply.write({ text: "The meeting" });
      await eventually(async () => expect(await textSeen()).toContain("The meeting"));
      reply.write({ text: "The meeting moves" });
      reply.write({ text: "The meeting moves to Thursday" });
      await eventually(async () => expect(await textSeen()).toContain("The meeting moves to Thursday"));
      await reply.finish();
    });

    it.runIf(hasWordlessSign)("shows that it works until there is text, and posts nothing", async () => {
      const reply = open();
      await reply.show();
      reply.status("Transcribing note.ogg");
      await eventually(async () => expect((await subject.seen()).isWorking).toBe(true));
      expect((await textSeen()).trim()).toBe("");
      reply.write({ text: "It says hello" });
      await reply.finish();
      expect(await textSeen()).toContain("It says hello");
      await eventually(async () => expect((await subject.seen()).isWorking).toBe(false));
    });

    it.skipIf(isNotStreamed || hasWordlessSign)("shows a status until there is text", async () => {
      const reply = open();
      await reply.show();
      reply.status("Transcribing note.ogg");
      await eventually(async () => expect(await textSeen()).toContain("Transcribing note.ogg"));
      reply.write({ text: "It says hello" });
      await reply.finish();
      await eventually(async () => expect(await textSeen()).not.toContain("Transcribing"));
    });

    it("shows the last text and the notices when it is finished", async () => {
      const reply = open();
      await reply.show();
      reply.write({ text: "half" });
      reply.write({ text: "half and whole" });
      await reply.finish({ notices: ["Two messages were left out."] });
      const text = await textSeen();
      expect(text).toContain("half and whole");
      expect(text.indexOf("Two messages were left out.")).toBeGreaterThan(text.indexOf("half and whole"));
      expect(text.split("half")).toHaveLength(2);
    });

    it("shows notices where there is no text", async () => {
      const reply = open();
      await reply.show();
      await reply.finish({ notices: ["The model had no words."] });
      expect(await textSeen()).toContain("The model had no words.");
    });

    it("keeps the text of a failed reply, says why, and offers a retry", async () => {
      const reply = open();
      await reply.show();
      reply.write({ text: "As far as it came" });
      await reply.fail({ text: "The gateway went away.", notices: ["It was cut."], retryKey: "retry-key-1" });
      const { text, retryKeys } = await subject.seen();
      for (const words of ["As far as it came", "The gateway went away.", "It was cut."]) {
        expect(text).toContain(words);
      }
      expect(retryKeys).toEqual(hasNoButtons ? [] : ["retry-key-1"]);
    });

    it("offers no Retry without a retry key", async () => {
      const reply = open();
      await reply.show();
      await reply.fail({ text: "This cannot be helped." });
      expect((await subject.seen()).retryKeys).toEqual([]);
    });

    it.skipIf(hasNoButtons)("asks for confirmation with a button", async () => {
      const before = open();
      await before.show();
      before.write({ text: "This would go for good." });
      await before.finish({ confirm: { label: "Remove 3 messages", key: "confirm-key-1" } });
      const asked = await subject.seen();
      expect(asked.text).toContain("This would go for good.");
      expect(asked.confirms).toEqual([{ label: "Remove 3 messages", key: "confirm-key-1" }]);
      expect(asked.retryKeys).toEqual([]);
    });

    it.skipIf(isNotEditable || hasNoButtons)(
      "removes the button when the same reply is resumed",
      async () => {
        const before = open();
        await before.show();
        before.write({ text: "This would go for good." });
        await before.finish({ confirm: { label: "Remove 3 messages", key: "confirm-key-1" } });
        const after = open(saved);
        await after.show();
        after.write({ text: "It is gone." });
        await after.finish();
        const done = await subject.seen();
        expect(done.text).toContain("It is gone.");
        expect(done.confirms).toEqual([]);
      },
    );

    const details = { kind: "details", key: "fake:conversation fake:1/assistant/1" } as const;

    it.skipIf(hasNoButtons)("shows a finished answer's buttons once, below its last message", async () => {
      const reply = open();
      await reply.show();
      reply.write({ text: lines(150).join("\n\n") });
      await reply.finish({ notices: ["Something was left out."], actions: [details] });
      expect((await subject.seen()).actions).toEqual([details]);
    });

    it.skipIf(isNotEditable || hasNoButtons)(
      "removes the buttons while the same reply is answered again",
      async () => {
        const before = open();
        await before.show();
        before.write({ text: "The first answer." });
        await before.finish({ actions: [details] });
        const after = open(saved);
        await after.show();
        after.write({ text: "The second answer." });
        await after.fail({ text: "It broke off." });
        expect((await subject.seen()).actions).toEqual([]);
      },
    );

    it("shows an answer of 9,000 characters whole and in order", async () => {
      const prose = lines(150).join("\n\n");
      const code = lines(150).map((line) => `${line} in code`);
      const whole = `${prose}\n\n\`\`\`\n${code.join("\n")}\n\`\`\`\n\nThat was all.`;
      const reply = open();
      await reply.show();
      reply.write({ text: whole.slice(0, 5000) });
      reply.write({ text: whole });
      await reply.finish();
      const text = await textSeen();
      let at = -1;
      for (const line of [...lines(150), ...code, "That was all."]) {
        const next = text.indexOf(line, at + 1);
        expect(next, line).toBeGreaterThan(at);
        at = next;
      }
    });

    it.skipIf(hasNoFiles)("shows files with their alt texts", async () => {
      const reply = open();
      await reply.show();
      await reply.attach(file);
      reply.write({ text: "Here it is" });
      await reply.finish();
      const { files, text } = await subject.seen();
      expect(files).toEqual([{ name: "picture.png", altText: "one black pixel" }]);
      expect(text).toContain("Here it is");
    });

    it.runIf(hasNoFiles)("rejects a file, and shows the text all the same", async () => {
      const reply = open();
      await reply.show();
      reply.write({ text: "Here it is" });
      await expect(reply.attach(file)).rejects.toBeInstanceOf(ParleyError);
      await reply.finish();
      expect(await textSeen()).toContain("Here it is");
    });

    it("is resumed at its saved address", async () => {
      const before = open();
      await before.show();
      before.write({ text: "words of the first try" });
      if (!isNotStreamed)
        await eventually(async () => expect(await textSeen()).toContain("words of the first try"));
      const after = open(saved);
      await after.show();
      after.write({ text: "words of the second try" });
      await after.finish();
      const text = await textSeen();
      expect(text).toContain("words of the second try");
      expect(text).not.toContain("words of the first try");
    });

    it("shows nothing more once it is abandoned, and is resumed at its saved address", async () => {
      const before = open();
      await before.show();
      before.write({ text: "words of the first try" });
      if (!isNotStreamed)
        await eventually(async () => expect(await textSeen()).toContain("words of the first try"));
      before.abandon();
      const seen = await subject.seen();
      before.write({ text: "words that nobody may see" });
      before.status("words that nobody may see");
      await Promise.allSettled([
        before.finish({ notices: ["words that nobody may see"] }),
        before.fail({ text: "words that nobody may see" }),
      ]);
      expect(await subject.seen()).toEqual(seen);
      const after = open(saved);
      await after.show();
      after.write({ text: "words of the second try" });
      await after.finish();
      const text = await textSeen();
      expect(text).toContain("words of the second try");
      expect(text).not.toContain("words of the first try");
      expect(text).not.toContain("nobody may see");
    });

    it("ends once and ignores what comes after", async () => {
      const reply = open();
      await reply.show();
      reply.write({ text: "The end" });
      await reply.finish();
      const seen = await subject.seen();
      reply.write({ text: "too late" });
      reply.status("too late");
      await reply.finish({ notices: ["too late"] });
      await reply.fail({ text: "too late" });
      expect(await subject.seen()).toEqual(seen);
      expect(seen.text).not.toContain("too late");
    });
  });
}
