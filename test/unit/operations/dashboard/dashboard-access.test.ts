import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { createTestLog } from "../../gateway/harness.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { createDashboardAccess } from "../../../../src/operations/dashboard/dashboard.ts";

const request = (
  remoteAddress: string,
  headers: Readonly<Record<string, string>> = { host: "127.0.0.1:3000" },
): IncomingMessage => ({ socket: { remoteAddress }, headers }) as unknown as IncomingMessage;
const basic = (login: string) => `Basic ${Buffer.from(login).toString("base64")}`;
const addressOf = ({ socket }: IncomingMessage) => socket.remoteAddress ?? "";

test.each([
  ["127.0.0.1", { host: "127.0.0.1:3000" }],
  ["::1", { host: "localhost:3000" }],
  ["::ffff:127.0.0.1", { host: "[::1]:3000" }],
])("this machine is admitted: from %s", async (address, headers) => {
  const admit = createDashboardAccess({ password: undefined, addressOf, log: silentLog });
  expect(await admit(request(address, headers))).toEqual({ kind: "admitted" });
});

test.each([
  ["another machine", "192.0.2.7", { host: "127.0.0.1:3000" }],
  ["a proxy on this machine that passes the host on", "127.0.0.1", { host: "parley.example" }],
  ["a proxy that says for whom", "127.0.0.1", { host: "127.0.0.1:3000", "x-forwarded-for": "192.0.2.7" }],
  ["a proxy with the standard header", "127.0.0.1", { host: "127.0.0.1:3000", forwarded: "for=192.0.2.7" }],
  ["a proxy that names itself", "127.0.0.1", { host: "127.0.0.1:3000", via: "1.1 proxy" }],
])("%s is not", async (_, address, headers) => {
  expect(
    await createDashboardAccess({ password: undefined, addressOf, log: silentLog })(
      request(address, headers),
    ),
  ).toEqual({
    kind: "closed",
  });
  const withPassword = createDashboardAccess({
    password: "correct horse battery",
    addressOf,
    log: silentLog,
  });
  expect(await withPassword(request(address, headers))).toEqual({ kind: "password-needed" });
  const authorization = basic("anyone:correct horse battery");
  expect(await withPassword(request(address, { ...headers, authorization }))).toEqual({ kind: "admitted" });
});

// Attack: The dashboard through a proxy on the same machine that says nothing of whom it serves.
// What holds: where a password is set, everybody gives it.
test.each([
  ["this machine", { host: "127.0.0.1:3000" }],
  [
    "a proxy on this machine that says nothing of whom it serves",
    { host: "localhost:3000", connection: "close" },
  ],
])("where a password is set, %s needs it too", async (_, headers) => {
  const admit = createDashboardAccess({ password: "correct horse battery", addressOf, log: silentLog });
  expect(await admit(request("127.0.0.1", headers))).toEqual({ kind: "password-needed" });
  const authorization = basic("anyone:correct horse battery");
  expect(await admit(request("127.0.0.1", { ...headers, authorization }))).toEqual({ kind: "admitted" });
});

test("wrong passwords are refused, and delayed by address", async () => {
  let now = 0;
  const log = createTestLog();
  const admit = createDashboardAccess({ password: "correct horse battery", addressOf, log, now: () => now });
  const ask = async (address: string, authorization: string) =>
    (await admit(request(address, { host: "parley.example", authorization }))).kind;
  for (const wrong of ["x:correct horse", "x: correct horse battery", ":", "x:"])
    expect(await ask("192.0.2.7", basic(wrong))).toBe("password-needed");
  expect(log.lines.join()).toContain("dashboard login failed: wrong password");
  expect(log.lines.join()).toContain("from 192.0.2.7");
  expect(await ask("192.0.2.7", basic("x:correct horse battery"))).toBe("limited");
  expect(await ask("192.0.2.8", basic("x:correct horse battery"))).toBe("admitted");
  now += 2000;
  expect(await ask("192.0.2.7", basic("x:correct horse battery"))).toBe("admitted");
  for (const other of ["Bearer abc", "Basic ***", "Basic", basic("correct horse battery")])
    expect(await ask("192.0.2.9", other)).toBe("password-needed");
});
