import { afterEach, describe, expect, test } from "vitest";
import { showPictures } from "../../../../src/assistant/turn/show-pictures.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { ChatEvent } from "../../../../src/core/gateway.ts";
import type { MessagePart } from "../../../../src/core/storage.ts";
import { createWorld, message, type World } from "../../../support/fakes.ts";
import { silentLog } from "../../../support/silent-log.ts";

const image = (byte: number): ChatEvent => ({
  kind: "image",
  image: { bytes: new Uint8Array([byte, 2, 3]), mediaType: "image/png" },
});
const text: ChatEvent = { kind: "text", text: "Here they are." };
const finish: ChatEvent = { kind: "finish", reason: "stop", model: "m", usage: { isEstimated: true } };

describe("pictures of a chat answer", () => {
  let world: World;
  afterEach(() => world.close());

  async function answered(...events: readonly (ChatEvent | Error)[]) {
    world = await createWorld();
    world.gateway.answerWith(async function* answer() {
      for (const event of events) {
        await Promise.resolve();
        if (event instanceof Error) throw event;
        yield event;
      }
    });
    await world.answered(message("draw cats"));
    return world.platform.replies[0]!;
  }

  test("are shown once the answer is stored, with the prompt as alt text", async () => {
    const reply = await answered(image(1), image(2), text, image(3), finish);
    expect(reply.files.map(({ name, altText }) => [name, altText])).toEqual([
      ["picture-1.png", "draw cats"],
      ["picture-2.png", "draw cats"],
      ["picture-3.png", "draw cats"],
    ]);
    expect(reply.state).toBe("finished");
    expect(reply.actions.map(({ kind }) => kind)).toEqual(["again", "change", "details"]);
  });

  test("that arrived before it broke off are shown and kept", async () => {
    const reply = await answered(image(1), image(2), new ParleyError("gateway-unreachable", "cut"));
    expect(reply.files.map(({ name }) => name)).toEqual(["picture-1.png", "picture-2.png"]);
    expect(reply.state).toBe("failed");
    const log = await world.store.conversations.recent("fake:c1", { maxMessages: 10 });
    const stored = log.find(({ role }) => role === "assistant");
    expect(stored?.outcome).toBe("interrupted");
    expect(stored?.parts).toHaveLength(2);
  });
});

describe("showPictures", () => {
  const picture = (hash: string): MessagePart => ({
    kind: "image",
    blob: { hash, mediaType: "image/png", sizeBytes: 3 },
    name: `${hash}.png`,
    altText: "a cat",
  });
  const blobs = {
    conversations: {
      getBlob: (_: string, hash: string) =>
        Promise.resolve(
          hash === "lost" ? undefined : { bytes: new Uint8Array([1, 2, 3]), mediaType: "image/png" },
        ),
    },
    log: silentLog,
  };

  test("attaches all in one tick, whatever is between them", async () => {
    const groups: string[][] = [];
    let current: string[] | undefined;
    const parts = [picture("a"), { kind: "text", text: "and" } as const, picture("b"), picture("c")];
    await showPictures(blobs, "c", parts, {
      async attach({ name }) {
        if (current === undefined) {
          current = [];
          groups.push(current);
          void Promise.resolve().then(() => (current = undefined));
        }
        current.push(name);
        await new Promise((resolve) => setImmediate(resolve));
      },
    });
    expect(groups).toEqual([["a.png", "b.png", "c.png"]]);
  });

  test("says what is no longer kept", async () => {
    const attach = () => Promise.resolve();
    expect(await showPictures(blobs, "c", [picture("a"), picture("lost")], { attach })).toEqual([
      "1 picture is no longer kept.",
    ]);
  });

  test("says why the platform refuses them, and leaves outages to the next run", async () => {
    const forbidden = new ParleyError("platform-forbidden", "no", { detail: { permission: "Attach Files" } });
    const [notice] = await showPictures(blobs, "c", [picture("a")], {
      attach: () => Promise.reject(forbidden),
    });
    expect(notice).toContain("The pictures could not be shown here.");
    expect(notice).toContain("Attach Files");
    const outage = new ParleyError("platform-unreachable", "down");
    const attach = () => Promise.reject(outage);
    await expect(showPictures(blobs, "c", [picture("a")], { attach })).rejects.toBe(outage);
  });
});
