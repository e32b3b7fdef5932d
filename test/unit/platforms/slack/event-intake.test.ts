import type { ReceiverEvent } from "@slack/bolt";
import { expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createEventIntake } from "../../../../src/platforms/slack/event-intake.ts";
import { createManualClock } from "../../../support/manual-clock.ts";

/** What an app does with an event; the acknowledgements that Slack gets. */
function open(handle: (event: ReceiverEvent) => Promise<void>) {
  const acks: unknown[] = [];
  const closing = new AbortController();
  const clock = createManualClock();
  const intake = createEventIntake(() => Promise.resolve({ processEvent: handle }), closing.signal, clock);
  const send = (body: Record<string, unknown>): Promise<void> =>
    intake.processEvent({
      body,
      ack(response) {
        acks.push(response);
        return Promise.resolve();
      },
    });
  return { acks, clock, closing, intake, send };
}

const event = { type: "event_callback" };

test("an event is acknowledged when it is handled, and not where its handler fails", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const handled = open(async ({ ack }) => {
    // Bolt does so before the listeners run.
    await ack();
    await promise;
  });
  const sent = handled.send(event);
  await Promise.resolve();
  expect(handled.acks).toEqual([]);
  resolve();
  await sent;
  expect(handled.acks).toHaveLength(1);
  const failing = open(() => Promise.reject(new Error("no store")));
  await expect(failing.send(event)).rejects.toThrow("no store");
  expect(failing.acks).toEqual([]);
});

test("a button is acknowledged in time, whatever takes long behind it, and once", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { acks, clock, send } = open(async ({ ack }) => {
    await promise;
    await ack();
  });
  const sent = send({ type: "block_actions" });
  await clock.advance(2999);
  expect(acks).toHaveLength(1);
  resolve();
  await sent;
  expect(acks).toHaveLength(1);
});

test("what nobody listens to is acknowledged, with nothing in it", async () => {
  const { acks, send } = open(() => Promise.resolve());
  await send({ type: "block_actions" });
  await send({ type: "view_closed" });
  expect(acks).toEqual([undefined, undefined]);
});

test("while it closes, events are refused and commands are handled", async () => {
  const { acks, closing, intake, send } = open(({ ack }) => ack("said"));
  closing.abort(new ParleyError("stopping", "closing"));
  await expect(send(event)).rejects.toMatchObject({ code: "stopping" });
  await send({ command: "/ask" });
  expect(acks).toEqual(["said"]);
  await intake.whenHandled();
});
