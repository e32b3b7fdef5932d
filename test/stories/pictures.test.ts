import { expect, it } from "vitest";
import { fixture } from "../fixtures/fixtures.ts";
import type { SentMessage } from "./scripted-model.ts";
import type { Place, Shown, Surface } from "./surface.ts";
import { eachPlatform, tell } from "./tell.ts";

let eve: ReturnType<Surface["person"]>;

const withFiles = (place: Place) => place.shown().filter(({ files }) => files.length > 0);
const withButtons = (place: Place) => place.shown().filter(({ buttons }) => buttons.length > 0);

/** Returns the picture that a change was made from. */
function sourceOf(messages: readonly SentMessage[] | undefined): Buffer | undefined {
  const content = messages?.at(-1)?.content;
  const part = typeof content === "string" ? undefined : content?.find(({ type }) => type === "image_url");
  const [, base64] = part?.image_url?.url.split(",") ?? [];
  return base64 === undefined ? undefined : Buffer.from(base64, "base64");
}

/** Uses `/imagine`. Resolves to the answer when its pictures are shown too. */
async function draws({ person, channel, ...surface }: Surface, options: object = {}) {
  const [ada, bo] = [person("Ada"), person("Bo")];
  const general = channel("general", [ada, bo]);
  await ada.uses("imagine", { prompt: "a red fox", ...options }, general);
  /** Resolves to the `count`th answer with buttons. */
  const answered = async (count: number): Promise<Shown> => {
    await expect.poll(() => [withFiles(general).length, withButtons(general).length]).toEqual([count, count]);
    await surface.idle();
    return withButtons(general).at(-1)!;
  };
  return { ada, bo, general, answered, answer: await answered(1) };
}

tell(eachPlatform, ({ begin, start }) => {
  it("pictures of one answer are one message, each with the prompt as alt text", async () => {
    const surface = await begin();
    const { general, answer } = await draws(surface, { count: 3, size: "256x256" });
    expect(withFiles(general)[0]?.files.map(({ name, altText }) => [name, altText])).toEqual(
      [1, 2, 3].map((number) => [`picture-${number}.png`, "a red fox"]),
    );
    // A platform that edits no files into a message shows them above the buttons, as Discord does.
    if (surface.name === "Discord")
      expect(general.shown().map(({ files, buttons }) => [files.length, buttons.length])).toEqual([
        [3, 0],
        [0, 3],
      ]);
    const { bytes } = withFiles(general)[0]!.files[0]!;
    const base = await fixture("picture.png");
    expect(Buffer.from(bytes).subarray(0, base.length).equals(base)).toBe(true);
    expect(answer.buttons).toEqual(["Again", "Change", "Details"]);
    const [request] = surface.model.requestsTo("/v1/images/generations");
    expect(JSON.parse(request!.body.toString())).toMatchObject({ prompt: "a red fox", size: "256x256" });
  });

  it("are drawn again below, once for a double click, with the same prompt and count, after a restart too", async () => {
    const surface = await begin();
    const { bo, general, answered, answer } = await draws(surface, { count: 2 });
    await surface.restart();
    await Promise.all([1, 2].map(() => bo.presses("Again", answer)));
    const second = await answered(2);
    expect(second.id).not.toBe(answer.id);
    expect(second.text).toContain("a red fox");
    expect(withFiles(general)[1]?.files).toHaveLength(2);
    const drawings = surface.model.requestsTo("/v1/images/generations");
    expect(drawings.map(({ body }) => body.toString())).toEqual(Array(2).fill(drawings[0]?.body.toString()));
  });

  it("are changed by a form that asks which one, and the reply says which it took", async () => {
    const surface = await begin();
    const { ada, general, answered, answer } = await draws(surface, { count: 2 });
    await surface.restart();
    await ada.presses("Change", answer);
    const [what, which] = await ada.form();
    expect(what).toMatchObject({ label: "What should change?", isRequired: true });
    expect(which).toMatchObject({ label: "Which picture?", isRequired: true });
    await ada.submits({ "What should change?": "make it blue", "Which picture?": which!.choices[1]! });
    const changed = await answered(2);
    expect(changed.text + changed.smallPrint).toContain("Changed from picture 2 of 2 “a red fox”");
    expect(changed.buttons).toEqual(["Again", "Change", "Details"]);
    expect(surface.model.said(0).at(-1)).toContain("make it blue");
    const source = Buffer.from(withFiles(general)[0]!.files[1]!.bytes);
    expect(sourceOf(surface.model.chats()[0])?.equals(source)).toBe(true);
  });

  it("are changed by plain words in their thread, and the answer says which it took", async () => {
    const { model, person, channel, threadOf, idle } = await begin();
    const ada = person("Ada");
    const general = channel("general", [ada]);
    const thread = await threadOf(ada.writes(general, "/imagine a red fox count:2", { mention: true }));
    await expect.poll(() => withButtons(thread).length).toBe(1);
    await idle();
    model.answers('<change_picture number="1">make it blue</change_picture>');
    ada.writes(thread, "make the first one blue");
    await expect.poll(() => [withFiles(thread).length, withButtons(thread).length]).toEqual([2, 2]);
    await idle();
    const changed = withButtons(thread)[1]!;
    expect(changed.text + changed.smallPrint).toContain("Changed from picture 1 of 2 “a red fox”");
    expect(changed.text).not.toContain("change_picture");
    expect(withFiles(thread)[1]?.files.map(({ altText }) => altText)).toEqual(["make it blue"]);
    await ada.presses("Again", changed);
    await expect.poll(() => withFiles(thread).length).toBe(3);
  });

  it("of an erased answer, and for people without access, are told in private", async () => {
    const surface = await start({
      settings: ({ person, userTerm }) => ({ DENY: userTerm((eve = person("Eve"))) }),
    });
    const { model, person, channel, shows, settled, gone, direct } = surface;
    const ada = person("Ada");
    const general = channel("general", [ada, eve]);
    await ada.uses("imagine", { prompt: "a red fox" }, general);
    const answer = await shows(general, ({ buttons }) => buttons.includes("Again"));
    await settled(general, 2);
    for (const [index, label] of ["Again", "Change"].entries()) {
      await eve.presses(label, answer);
      const told = () => general.shown().filter(({ onlyFor }) => onlyFor === "Eve");
      await expect.poll(() => told().length).toBe(index + 1);
      expect(told()[index]?.text).toContain("access rules exclude you");
    }
    await ada.uses("forget", { where: "everywhere", confirm: true }, direct(ada));
    await gone("a red fox");
    for (const [index, label] of ["Again", "Change"].entries()) {
      await ada.presses(label, answer);
      const told = () => general.shown().filter(({ onlyFor }) => onlyFor === "Ada");
      await expect.poll(() => told().length).toBe(index + 1);
      expect(told()[index]?.text).toContain("no longer stored");
    }
    expect(model.requestsTo("/v1/images/generations")).toHaveLength(1);
  });
});
