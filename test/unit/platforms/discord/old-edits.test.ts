import { afterEach, describe, expect, test } from "vitest";
import type { ReplyAddress } from "../../../../src/core/events.ts";
import type { Reply } from "../../../../src/core/platform.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../../simulators/discord/simulator.ts";
import { clock, startHarness, type Harness, until } from "./harness.ts";

const hourMs = 3_600_000;

// Discord takes few edits of messages older than an hour, and announces that limit in no header.
describe("answers in messages older than an hour", () => {
  let harness: Harness;
  let ada: Person;
  let direct: ChannelHandle;
  afterEach(() => harness.close());

  const start = async (rateLimits: NonNullable<Parameters<typeof startHarness>[0]>["rateLimits"] = {}) => {
    harness = await startHarness({ rateLimits });
    ada = harness.simulator.person("Ada");
    direct = harness.simulator.directMessages(ada);
  };
  const open = (address: ReplyAddress, saved: ReplyAddress[] = []): Reply =>
    harness.platform.openReply(address, {
      saveAddress: async (grown) => void saved.push(structuredClone(grown)),
    });
  const ask = async (text: string): Promise<ReplyAddress> => {
    const { receiver, lines } = harness;
    const count = receiver.events.length + 1;
    ada.sends({ channel: direct, text });
    return (await until(() => receiver.events[count - 1], { explain: () => lines })).address;
  };
  const edits = () => harness.simulator.requests.filter(({ method }) => method === "PATCH");
  const editsOf = (id: string) => edits().filter(({ path }) => path.endsWith(`/messages/${id}`));
  const limited = () => harness.simulator.requests.filter(({ status }) => status === 429);

  /** A reply that another process has left unfinished, two hours ago. */
  const leaveHalf = async (): Promise<{ address: ReplyAddress; id: string }> => {
    const saved: ReplyAddress[] = [];
    const half = open(await ask("one"), saved);
    await half.show();
    half.write({ text: "Half" });
    const shown = await until(() => direct.fromBot()[0]);
    await until(() => saved.length === 2);
    half.abandon();
    harness.simulator.advance(2 * hourMs);
    return { address: saved.at(-1)!, id: shown.id };
  };

  test("grow by no previews, and end in the same message", async () => {
    await start();
    const { address, id } = await leaveHalf();
    const resumed = open(address);
    const other = open(await ask("two"));
    await Promise.all([resumed.show(), other.show()]);
    const before = edits().length;
    let text = "";
    const streaming = setInterval(() => {
      text += "word ";
      for (const reply of [resumed, other]) reply.write({ text });
    }, 100);
    // The other answer, which is new, is edited four times meanwhile.
    await until(() => edits().length - editsOf(id).length >= before + 4, { timeoutMs: 15_000 });
    clearInterval(streaming);
    await Promise.all([resumed.finish(), other.finish()]);
    expect(limited()).toEqual([]);
    expect(editsOf(id).length).toBeLessThanOrEqual(3);
    expect(direct.fromBot().map((message) => message.text)).toEqual([text.trim(), text.trim()]);
  });

  test("that Discord refuses to edit hold up no new answer in the same channel", async () => {
    await start({ oldEdits: { limit: 0, windowMs: 300_000 } });
    const { address } = await leaveHalf();
    const resumed = open(address);
    void Promise.allSettled([resumed.show()]);
    await until(() => limited().length > 0);
    const other = open(await ask("two"));
    await other.show();
    other.write({ text: "New" });
    await until(() => direct.fromBot().some(({ text }) => text.startsWith("New")));
    const startedAt = clock.monotonic();
    other.write({ text: "New and whole." });
    await other.finish();
    expect(clock.monotonic() - startedAt).toBeLessThan(3000);
    expect(direct.fromBot().at(-1)?.text).toBe("New and whole.");
    // The limit is learned.
    expect(limited()).toHaveLength(1);
    resumed.abandon();
  });
});
