import { describe, expect, test } from "vitest";
import { cut, maxPieceChars, toDiscordContent } from "../../../../src/platforms/discord/content.ts";
import { fitFiles } from "../../../../src/platforms/discord/files.ts";
import { toThreadName } from "../../../../src/platforms/discord/threads.ts";

describe("toDiscordContent", () => {
  test("pings nobody and suppresses previews, whatever the text", () => {
    const shown = toDiscordContent({ text: "@everyone https://example.com", state: "finished" });
    expect(shown).toMatchObject({ allowed_mentions: { parse: [] }, flags: 4, components: [] });
  });

  test("a status is below an open code block, not in it", () => {
    const shown = toDiscordContent({ text: "```js\nlet x", state: "streaming", status: "Drawing" });
    expect(shown.content).toBe("```js\nlet x\n```\n-# Drawing");
  });

  test("notices that do not fit become the overflow, uncut", () => {
    const notice = "n".repeat(900);
    const text = "t".repeat(maxPieceChars);
    const shown = toDiscordContent({ text, state: "finished", notices: [notice] });
    expect(shown.content).toBe(text);
    expect(shown.overflow).toBe(`-# ${notice}`);
  });

  test("a key too long for a custom id shows no button", () => {
    const failed = { text: "", state: "failed", failure: "No." } as const;
    expect(toDiscordContent({ ...failed, retryKey: "discord:1" }).components).toHaveLength(1);
    expect(toDiscordContent({ ...failed, retryKey: "x".repeat(95) }).components).toEqual([]);
  });

  test("cut does not split surrogate pairs", () => {
    expect(cut("ab😀", 3)).toBe("ab");
    expect(cut("ab😀", 4)).toBe("ab😀");
  });
});

describe("toThreadName", () => {
  test("is one line of 1 to 100 characters", () => {
    expect(toThreadName("  Plan\n a   trip ")).toBe("Plan a trip");
    expect(toThreadName("")).toBe("Conversation");
    expect(toThreadName("x".repeat(300)).length).toBe(100);
  });
});

describe("fitFiles", () => {
  const file = (name: string, sizeBytes: number) => ({
    name,
    mediaType: "text/markdown",
    bytes: new Uint8Array(sizeBytes),
    altText: "a".repeat(2000),
  });

  test("distributes files over messages within the request limit, with alt texts within bounds", async () => {
    const mib = 1024 * 1024;
    const batches = await fitFiles([file("a", 9 * mib), file("b", 9 * mib), file("c", 9 * mib)], 10 * mib);
    expect(batches.map((batch) => batch.map((one) => one.name))).toEqual([["a", "b"], ["c"]]);
    expect(batches[0]?.[0]?.altText.length).toBe(1024);
    const many = await fitFiles(
      Array.from({ length: 11 }, (_, index) => file(`${index}`, 1)),
      mib,
    );
    expect(many.map((batch) => batch.length)).toEqual([10, 1]);
  });

  test("scales down a picture above the limit, and rejects other files", async () => {
    const { default: sharp } = await import("sharp");
    const noise = Buffer.from(Array.from({ length: 300 * 300 * 3 }, (_, index) => (index * 7919) % 251));
    const bytes = await sharp(noise, { raw: { width: 300, height: 300, channels: 3 } })
      .png()
      .toBuffer();
    const maxBytes = Math.floor(bytes.length / 2);
    const picture = { name: "big.png", mediaType: "image/png", bytes, altText: "noise" };
    const [[shown] = []] = await fitFiles([picture], maxBytes);
    expect((shown!.data as Uint8Array).length).toBeLessThanOrEqual(maxBytes);
    expect(shown?.name).toMatch(/^big\.(png|jpg|webp)$/);
    await expect(fitFiles([file("a.md", 100)], 50)).rejects.toMatchObject({ code: "attachment-too-large" });
  });
});
