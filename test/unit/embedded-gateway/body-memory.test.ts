import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { createBodyMemory, type BodySender } from "../../../src/embedded-gateway/upload.ts";
import { createManualClock } from "../../support/manual-clock.ts";

const mebibyte = 1024 * 1024;
const request = (length: string | undefined) =>
  Object.assign(new EventEmitter(), {
    headers: length === undefined ? {} : { "content-length": length },
  }) as unknown as IncomingMessage;
const from = (key: string, change: Partial<BodySender> = {}): BodySender => ({
  key,
  maxBodyBytes: 32 * mebibyte,
  signal: new AbortController().signal,
  giveUp: () => {},
  ...change,
});

test("large bodies wait for each other, small ones for nothing", async () => {
  const memory = createBodyMemory(10 * mebibyte, createManualClock());
  const release = await memory.admit(request(`${6 * mebibyte}`), from("ada"));
  let isAdmitted = false;
  const second = memory.admit(request(`${5 * mebibyte}`), from("ben")).then((done) => {
    isAdmitted = true;
    return done;
  });
  await memory.admit(request("1000"), from("ben"));
  expect(isAdmitted).toBe(false);
  release();
  (await second)();
});

test("a body that does not say its length, or lies about it, counts as the largest", async () => {
  const memory = createBodyMemory(10 * mebibyte, createManualClock());
  const largest = { maxBodyBytes: 10 * mebibyte };
  const release = await memory.admit(request(undefined), from("ada", largest));
  const controller = new AbortController();
  const waiting = memory.admit(request("1e99"), from("ben", { ...largest, signal: controller.signal }));
  controller.abort(new Error("client left"));
  await expect(waiting).rejects.toThrow("client left");
  release();
});

test("one key's bodies leave room for those of others", async () => {
  const memory = createBodyMemory(9 * mebibyte, createManualClock());
  for (let index = 0; index < 3; index += 1) void memory.admit(request(`${6 * mebibyte}`), from("ada"));
  (await memory.admit(request(`${3 * mebibyte}`), from("ben")))();
});

test("bodies that do not arrive are given up after ten seconds once another key's wait, and no earlier", async () => {
  const clock = createManualClock();
  const memory = createBodyMemory(9 * mebibyte, clock);
  const givenUp: string[] = [];
  const admit = (key: string, name: string, body = request(`${4.5 * mebibyte}`)) =>
    memory.admit(body, from(key, { giveUp: () => void givenUp.push(name) }));
  await admit("ada", "slow");
  const arrived = request(`${4.5 * mebibyte}`);
  await admit("eve", "arrived", arrived);
  arrived.emit("end");
  const left = new AbortController();
  const own = memory.admit(request(`${4.5 * mebibyte}`), from("ada", { signal: left.signal }));
  await clock.advance(60_000);
  expect(givenUp).toEqual([]);
  left.abort(new Error("client left"));
  await expect(own).rejects.toThrow("client left");
  const served = admit("ben", "ben's");
  expect(givenUp).toEqual(["slow"]);
  await served;
  const next = admit("cleo", "cleo's");
  await clock.advance(9000);
  expect(givenUp).toEqual(["slow"]);
  await clock.advance(1000);
  expect(givenUp).toEqual(["slow", "ben's"]);
  await next;
});
