import { expect, it } from "vitest";
import { toTimes, toShownTranscript } from "../../../../src/assistant/turn/transcript.ts";
import { ada } from "../../../support/fakes.ts";
import { holdUpOf } from "../../../support/longest-turn.ts";
import { messageOf } from "../../../support/store-samples.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

const world = worldOfEachTest();
const key = "fake:long";
const segments = 10_000;

/** A recording of some hours. */
async function longVoice(name: string) {
  const timed = Array.from({ length: segments }, (_, n) => ({
    text: `segment  number ${n}\nof a long`,
    fromSeconds: n,
    toSeconds: n + 1,
  }));
  const text = timed.map((segment) => segment.text).join(" ");
  return { kind: "voice", name, text, times: await toTimes(text, timed) } as const;
}

it("the transcripts of ten long recordings are made into files, and are corrected, without holding anybody up", async () => {
  const parts = await Promise.all(Array.from({ length: 10 }, (_, n) => longVoice(`${n}.ogg`)));
  const question = { ...messageOf(`${key}/user`), turnKey: key, author: ada.author, parts };
  await world.store.conversations.append("fake:c1", question);
  await world.store.conversations.append("fake:c1", {
    ...messageOf(`${key}/answer`),
    role: "assistant",
    turnKey: key,
    receipt: { calls: [], totalMs: 1, files: { read: 10, unread: 0, of: [question.id], voices: 10 } },
  });
  const press = (kind: "files" | "transcript") =>
    world.assistant.press({ kind, key: `fake:c1 ${key}/answer` }, ada);
  expect(
    await holdUpOf(async () => expect(await press("files")).toMatchObject({ kind: "files" })),
  ).toBeUndefined();
  expect(await holdUpOf(() => press("transcript"))).toBeUndefined();
  expect(await holdUpOf(() => Promise.all(parts.map((part) => toShownTranscript(part))))).toBeUndefined();
}, 120_000);
