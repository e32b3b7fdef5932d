import { afterEach, expect, test } from "vitest";
import { fixture } from "../../../fixtures/fixtures.ts";
import { call, createWorld, type World } from "../../../support/fakes.ts";

let world: World;
afterEach(async () => {
  await world.close();
});

/** Runs `/imagine` with a picture and resolves to the notices of its answer. */
async function noticesOf(options: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const image = { id: "png", name: "a.png", source: null };
  await world.answered(call("imagine", { prompt: "at night", image, ...options }));
  const [reply] = world.platform.replies.splice(0);
  expect(reply?.state).toBe("finished");
  return reply?.notices ?? [];
}

test("a picture is changed by a model that can, and the reply says so where the usual one cannot", async () => {
  world = await createWorld({
    files: { png: await fixture("picture.png") },
    models: [
      { id: "painter", capabilities: { generatesImages: true, drawsInChat: false } },
      { id: "editor", capabilities: { chats: true, drawsInChat: true, seesImages: true } },
      { id: "both", capabilities: { generatesImages: true, drawsInChat: true } },
    ],
  });
  const words = "The model painter cannot change pictures, so editor did.";
  expect(await noticesOf({})).toContain(words);
  expect(await noticesOf({ model: "editor" })).not.toContain(words);
  await world.store.settings.change("fake:ada", { "image-model": "painter" });
  await world.clock.advance(3000);
  expect(await noticesOf({})).toContain(words);
  await world.store.settings.change("fake:ada", { "image-model": "both" });
  await world.clock.advance(3000);
  expect((await noticesOf({})).join()).not.toContain("cannot change pictures");
  await world.store.settings.change("fake:ada", { "image-model": "gone" });
  await world.clock.advance(3000);
  const explained = await noticesOf({});
  expect(explained.join()).toContain("so editor was used");
  expect(explained.join()).not.toContain("painter");
  expect(world.gateway.requests.map(({ model }) => model)).toEqual([
    "editor",
    "editor",
    "editor",
    "both",
    "editor",
  ]);
});
