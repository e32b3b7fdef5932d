import { expect, test } from "vitest";
import { createInstallStates } from "../../../../src/platforms/slack/install-state.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";

test("a state is accepted once, by whichever instance it comes back to", async () => {
  const shared = createSharedMemory();
  const [one, other] = [createInstallStates("secret", shared), createInstallStates("secret", shared)];
  const [first, second] = [one.create(), one.create()];
  expect(await other.use(first)).toBe(true);
  expect(await one.use(first)).toBe(false);
  expect((await Promise.all([one.use(second), other.use(second)])).toSorted()).toEqual([false, true]);
});

test("on a store for one process two uses at once are one", async () => {
  const { records } = createSharedMemory();
  const states = createInstallStates("secret", {
    records,
    claims: { isShared: false, claim: () => Promise.resolve(true) },
  });
  const state = states.create();
  expect((await Promise.all([states.use(state), states.use(state)])).toSorted()).toEqual([false, true]);
  expect(await states.use(state)).toBe(false);
});

test("states of another app, changed ones and other texts are refused", async () => {
  const shared = createSharedMemory();
  const states = createInstallStates("secret", shared);
  expect(await createInstallStates("other", shared).use(states.create())).toBe(false);
  const state = states.create();
  expect(await states.use(state.replace(/^./, (char) => (char === "A" ? "B" : "A")))).toBe(false);
  for (const text of ["", "a.b.c", "..", state.slice(1), `${state}A`])
    expect(await states.use(text)).toBe(false);
  expect(await states.use(state)).toBe(true);
});

test("a state expires after ten minutes", async () => {
  const states = createInstallStates("secret", createSharedMemory());
  const [id = "", , signature = ""] = states.create().split(".");
  expect(await states.use(`${id}.${String(Date.now() - 1000).padStart(13, "0")}.${signature}`)).toBe(false);
});
