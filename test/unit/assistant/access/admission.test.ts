import { expect, test } from "vitest";
import { createAdmission } from "../../../../src/assistant/access/admission.ts";
import { createAllowedModels } from "../../../../src/assistant/access/allowed-models.ts";
import type { Budgets } from "../../../../src/assistant/access/budgets.ts";
import type { Gateway } from "../../../../src/core/gateway.ts";
import { createFakeGateway } from "../../../support/fakes.ts";

const limits = { calls: 4, callsPerPerson: 2, fileBytes: 100, fileBytesPerPerson: 50 };
/** Nothing is limited but what is at once. */
const free: Pick<Budgets, "reserve"> = {
  reserve: () => Promise.resolve({ settle: () => Promise.resolve(), release: () => Promise.resolve() }),
};
const callerOf = (personId: string) => ({ personId, platform: "fake" });
const admit = (gateway: Gateway, given = limits) =>
  createAdmission({ gateway, limits: given, budgets: free, allowed: createAllowedModels([]) });
const never = new AbortController().signal;

test("one person's calls do not keep others waiting, and none starts above the limits", async () => {
  const { gateway, answerWith } = createFakeGateway();
  const ends: (() => void)[] = [];
  answerWith(async function* answer(request) {
    await new Promise<void>((resolve) => ends.push(resolve));
    yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
  });
  const admission = admit(gateway);
  const ask = async (person: string) => {
    for await (const event of admission
      .gatewayFor(callerOf(person))
      .chat({ model: person, messages: [] }, never))
      expect(event.kind).toBe("finish");
  };
  const busy = Promise.all(Array.from({ length: 300 }, () => ask("eager")));
  await expect.poll(() => ends.length).toBe(2);
  const other = ask("patient");
  await expect.poll(() => ends.length).toBe(3);
  ends[2]!();
  await other;
  const ended = new Set<() => void>([ends[2]!]);
  await expect
    .poll(
      () => {
        const running = ends.filter((end) => !ended.has(end));
        expect(running.length).toBeLessThanOrEqual(2);
        for (const end of running) {
          ended.add(end);
          end();
        }
        return ends.length;
      },
      { interval: 1, timeout: 20_000 },
    )
    .toBe(301);
  for (const end of ends) end();
  await busy;
});

test("a call that is left before its end frees its slot", async () => {
  const { gateway } = createFakeGateway();
  const admission = admit(gateway, { ...limits, calls: 1, callsPerPerson: 1 });
  const ask = () =>
    admission.gatewayFor(callerOf("ada")).chat({ model: "m", messages: [] }, never)[Symbol.asyncIterator]();
  const left = ask();
  await left.next();
  await left.return?.();
  expect((await ask().next()).done).toBe(false);
});

test("a cancelled turn does not wait for its slot", async () => {
  const { gateway } = createFakeGateway();
  const admission = admit(gateway, { ...limits, calls: 1, callsPerPerson: 1 });
  const events = admission.gatewayFor(callerOf("ada")).chat({ model: "m", messages: [] }, never);
  const first = events[Symbol.asyncIterator]();
  await first.next();
  const controller = new AbortController();
  const waiting = admission
    .gatewayFor(callerOf("bob"))
    .transcribe(
      { model: "m", bytes: new Uint8Array(1), fileName: "a.ogg", mediaType: "audio/ogg" },
      controller.signal,
    );
  controller.abort(new Error("stopped"));
  await expect(waiting).rejects.toThrow("stopped");
  await first.return?.();
});

test("bytes of files are bounded for a person and for the process", async () => {
  const admission = admit(createFakeGateway().gateway);
  const releases = [
    await admission.admitBytes("ada", 50, never),
    await admission.admitBytes("bob", 40, never),
  ];
  let isAdmitted = false;
  const third = admission.admitBytes("eve", 20, never).then((release) => {
    isAdmitted = true;
    return release;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isAdmitted).toBe(false);
  releases[1]!();
  (await third)();
});
