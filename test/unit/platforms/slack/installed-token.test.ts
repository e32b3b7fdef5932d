import type { Installation } from "@slack/bolt";
import { expect, test } from "vitest";
import { createInstalledToken } from "../../../../src/platforms/slack/installed-token.ts";
import {
  createInstallations,
  type Installations,
  type StoredInstallation,
} from "../../../../src/platforms/slack/installations.ts";
import type { TeamToken } from "../../../../src/platforms/slack/team-token.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";
import { silentLog } from "../../../support/silent-log.ts";

const hourS = 3600;
const soon = (): number => Math.floor(Date.now() / 1000) + hourS;

function toInstallation(token: string, expiresAt: number | undefined): Installation {
  return {
    team: { id: "T1", name: "One" },
    enterprise: undefined,
    isEnterpriseInstall: false,
    user: { id: "U1", token: "xoxp-of-a-person", scopes: undefined },
    bot: {
      id: "B1",
      userId: "UB",
      scopes: ["chat:write"],
      token,
      ...(expiresAt === undefined ? {} : { refreshToken: `refresh ${token}`, expiresAt }),
    },
    authVersion: "v2",
  };
}

/** Two instances on one store; `rotate` exchanges a token for the next one, once. */
async function open(token: string, expiresAt: number | undefined, rotationMs = 20) {
  const { records, claims } = createSharedMemory();
  const installations = createInstallations(records);
  await installations.store.storeInstallation(toInstallation(token, expiresAt));
  const rotations: string[] = [];
  const rotate = async ({ installation }: StoredInstallation) => {
    rotations.push(installation.bot?.token ?? "");
    await new Promise((resolve) => setTimeout(resolve, rotationMs));
    await installations.store.storeInstallation(toInstallation("xoxe.xoxb-next", soon() + 11 * hourS));
  };
  const instance = async (): Promise<TeamToken> => {
    const found = await installations.find("T1");
    if (found === undefined) throw new Error("not installed");
    return createInstalledToken({ found, installations, claims, rotate, log: silentLog });
  };
  return { installations, rotations, instances: [await instance(), await instance()] as const };
}

test("a token without an expiry is used as it is, and that of the person is not kept", async () => {
  const { installations, rotations, instances } = await open("xoxb-1", undefined);
  expect(await instances[0].current()).toBe("xoxb-1");
  expect(rotations).toEqual([]);
  expect(JSON.stringify(await installations.read("T1"))).not.toContain("xoxp");
});

test("of two instances one rotates a token that expires soon; the other uses the old one meanwhile", async () => {
  const { rotations, instances } = await open("xoxe.xoxb-old", soon());
  const tokens = await Promise.all([...instances, ...instances].map((one) => one.current()));
  expect(rotations).toEqual(["xoxe.xoxb-old"]);
  expect(new Set(tokens)).toEqual(new Set(["xoxe.xoxb-next", "xoxe.xoxb-old"]));
});

test("where the token has expired, the other instance waits for the new one", async () => {
  const { rotations, instances } = await open("xoxe.xoxb-old", soon() - 2 * hourS);
  const tokens = await Promise.all(instances.map((one) => one.current()));
  expect(rotations).toEqual(["xoxe.xoxb-old"]);
  expect(tokens).toEqual(["xoxe.xoxb-next", "xoxe.xoxb-next"]);
});

test("without an installation there is no token", async () => {
  const { installations, instances } = await open("xoxe.xoxb-old", soon());
  await (installations satisfies Installations).delete("T1");
  await expect(instances[0].current()).rejects.toMatchObject({ code: "platform-unauthorized" });
});
