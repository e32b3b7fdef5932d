import { afterEach, beforeEach, expect, test } from "vitest";
import { isParleyError } from "../../../../src/core/errors.ts";
import type { Attachment } from "../../../../src/core/events.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import type { SentFile } from "../../../simulators/slack/sent-message.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
beforeEach(async () => {
  harness = await openSlackHarness();
});
afterEach(() => harness.close());

/** The attachment as it reaches the assistant. */
async function sent(file: SentFile): Promise<Attachment> {
  const ana = harness.slack.person("Ana");
  ana.sends({ channel: ana.directMessages, files: [file] });
  const event = await harness.slack.waitFor("the message", () => harness.receiver.events[0]);
  const attachment = event.kind === "message" ? event.attachments[0] : undefined;
  if (attachment === undefined) throw new Error("no attachment");
  return attachment;
}

const download = (attachment: Attachment, maxBytes = 1_000_000) =>
  harness.platform.download(attachment, { maxBytes, signal: AbortSignal.timeout(5000) });

const failure = (attachment: Attachment, maxBytes?: number) =>
  download(attachment, maxBytes).then(
    () => undefined,
    (error: unknown) => (isParleyError(error) ? error : undefined),
  );

const picture = async (): Promise<SentFile> => ({
  name: "picture.png",
  mediaType: "image/png",
  bytes: await fixture("picture.png"),
});

test("a picture's description is its alt text", async () => {
  const file = await picture();
  expect(await sent({ ...file, extra: { alt_txt: "A red house" } })).toMatchObject({
    altText: "A red house",
  });
});

test("a file's bytes are complete", async () => {
  const file = await picture();
  expect(await download(await sent(file))).toEqual(new Uint8Array(file.bytes));
});

test("a Slack Connect file is looked up by its id", async () => {
  const file = await picture();
  const attachment = await sent({ ...file, extra: { file_access: "check_file_info" } });
  expect(attachment).toMatchObject({ name: "picture.png", mediaType: "image/png" });
  expect(await download(attachment)).toHaveLength(file.bytes.length);
});

test("a file whose lookup failed is looked up again for the download", async () => {
  const file = await picture();
  harness.slack.fail("files.info", { error: "internal_error" });
  const attachment = await sent({ ...file, extra: { file_access: "check_file_info" } });
  expect(await download(attachment)).toHaveLength(file.bytes.length);
});

test("Slack's login page instead of a file means a missing scope", async () => {
  const attachment = await sent(await picture());
  harness.slack.revokeScope("files:read");
  const error = await failure(attachment);
  expect(error?.code).toBe("platform-forbidden");
  expect(error?.detail["permission"]).toBe("files:read");
});

test("an uploaded HTML file is distinguished from the login page", async () => {
  const bytes = new TextEncoder().encode("<!DOCTYPE html><p>notes</p>");
  const attachment = await sent({ name: "notes.html", mediaType: "text/html", bytes });
  expect(await download(attachment)).toEqual(bytes);
  harness.slack.revokeScope("files:read");
  expect((await failure(attachment))?.code).toBe("platform-forbidden");
});

test("a deleted file is `attachment-gone`", async () => {
  const attachment = await sent(await picture());
  harness.slack.deleteFile("picture.png");
  expect((await failure(attachment))?.code).toBe("attachment-gone");
});

test("a file over the limit is refused", async () => {
  expect((await failure(await sent(await picture()), 100))?.code).toBe("attachment-too-large");
});

test("other hosts get no request and no token", async () => {
  const attachment = await sent(await picture());
  const elsewhere = { ...attachment, source: { id: "F1", url: "https://example.com/files-pri/x.png" } };
  expect((await failure(elsewhere))?.code).toBe("attachment-blocked");
});
