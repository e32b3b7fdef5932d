import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { createBodyMemory } from "../../../src/embedded-gateway/body-memory.ts";

const request = (length: string | undefined) =>
  ({ headers: length === undefined ? {} : { "content-length": length } }) as IncomingMessage;
const mebibyte = 1024 * 1024;
const never = new AbortController().signal;

test("large bodies wait for each other, small ones for nothing", async () => {
  const memory = createBodyMemory(10 * mebibyte);
  const release = await memory.admit(request(`${8 * mebibyte}`), 32 * mebibyte, never);
  let isAdmitted = false;
  const second = memory.admit(request(`${4 * mebibyte}`), 32 * mebibyte, never).then((done) => {
    isAdmitted = true;
    return done;
  });
  await memory.admit(request("1000"), 32 * mebibyte, never);
  expect(isAdmitted).toBe(false);
  release();
  (await second)();
});

test("a body that does not say its length, or lies about it, counts as the largest", async () => {
  const memory = createBodyMemory(10 * mebibyte);
  const release = await memory.admit(request(undefined), 10 * mebibyte, never);
  const controller = new AbortController();
  const waiting = memory.admit(request("1e99"), 10 * mebibyte, controller.signal);
  controller.abort(new Error("client left"));
  await expect(waiting).rejects.toThrow("client left");
  release();
});
