import { expect, test } from "vitest";
import { startHarness, until } from "./harness.ts";

test("a bulk deletion of 100 messages is one call, which names the threads that may begin with them", async () => {
  const harness = await startHarness();
  try {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    const mention = ada.sends({ channel: general, text: "begin", mentionBot: true });
    await until(() => receiver.events.length === 1);
    const others = Array.from({ length: 99 }, (_, index) =>
      ada.sends({ channel: general, text: `${index}` }),
    );
    general.purge(mention.id, ...others.map(({ id }) => id));
    await until(() => receiver.deletedMessages.length > 0, { explain: () => harness.lines });
    expect(receiver.deletionCalls).toBe(1);
    expect(receiver.deletedMessages).toContainEqual({
      conversationId: `discord:${general.id}`,
      key: `discord:${mention.id}`,
    });
    expect(receiver.deletedMessages).toContainEqual({
      conversationId: `discord:${mention.id}`,
      key: `discord:${mention.id}`,
    });
  } finally {
    await harness.close();
  }
});
