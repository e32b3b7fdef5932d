import { PermissionFlagsBits, PermissionsBitField } from "discord.js";
import { expect, onTestFinished, test } from "vitest";
import { toPermissions } from "../../../../src/platforms/discord/transport/directory.ts";
import { startHarness, until, letIdentify } from "./harness.ts";

const history = PermissionFlagsBits.ReadMessageHistory;
const other = PermissionFlagsBits.SendMessages;
const [server, helper, admin, ada] = ["1", "3", "4", "5"] as const;

interface Overwrite {
  readonly id: string;
  readonly allow?: bigint;
  readonly deny?: bigint;
}

function permissionsOf(
  everyone: bigint,
  overwrites: readonly Overwrite[],
  roleIds: readonly string[],
  userId: string,
): PermissionsBitField {
  const roles = {
    cache: new Map([
      [server, { permissions: new PermissionsBitField(everyone) }],
      [helper, { permissions: new PermissionsBitField(other) }],
      [admin, { permissions: new PermissionsBitField(PermissionFlagsBits.Administrator) }],
    ]),
  };
  const said = overwrites.map(({ id, allow = 0n, deny = 0n }) => {
    return [id, { allow: new PermissionsBitField(allow), deny: new PermissionsBitField(deny) }] as const;
  });
  return toPermissions({ id: server, ownerId: "9", roles }, new Map(said), userId, roleIds);
}

test.each<[string, boolean, bigint, readonly Overwrite[], readonly string[], string?]>([
  ["the role of everybody has it", true, history, [], []],
  ["no role has it", false, other, [], [helper]],
  ["the channel denies it to everybody", false, history, [{ id: server, deny: history }], [helper]],
  ["a channel denies something else", true, history, [{ id: server, deny: other }], []],
  [
    "the channel allows it to a role",
    true,
    history,
    [
      { id: server, deny: history },
      { id: helper, allow: history },
    ],
    [helper],
  ],
  ["the channel denies it to a role", false, history, [{ id: helper, deny: history }], [helper]],
  [
    "what is allowed to the member wins over their role",
    true,
    other,
    [
      { id: helper, deny: history },
      { id: ada, allow: history },
    ],
    [helper],
  ],
  ["what is denied to the member wins over all", false, history, [{ id: ada, deny: history }], []],
  ["administrators have all", true, other, [{ id: ada, deny: history }], [admin]],
  ["the owner has all", true, other, [{ id: server, deny: history }], [], "9"],
])("who may see what was said before: %s", (_, expected, everyone, overwrites, roleIds, userId = ada) => {
  expect(permissionsOf(everyone, overwrites, roleIds, userId).has(history)).toBe(expected);
});

test("a channel that is changed says it anew", async () => {
  const { simulator, receiver, close } = await startHarness({
    prepare: (one) => void one.channel("general"),
  });
  onTestFinished(close);
  const ada = simulator.person("Ada");
  const [id = ""] = Array.from(simulator.world.channels.keys()).slice(-1);
  const general = simulator.handle(id);
  ada.sends({ channel: general, text: "before", mentionBot: true });
  await until(() => receiver.events.length === 1);
  general.denyTo(ada, "READ_MESSAGE_HISTORY");
  ada.sends({ channel: general, text: "after", mentionBot: true });
  await until(() => receiver.events.length === 2);
  expect(receiver.events.map(({ origin }) => origin?.readsHistory)).toEqual([undefined, false]);
});

test("a server that the bot was removed from while it was not connected is not its own any more", async () => {
  const { simulator, platform, receiver, close } = await startHarness();
  onTestFinished(close);
  const { id: guildId, name } = simulator.world.guild;
  await until(() => platform.health().state === "ready");
  expect(await platform.nameOf?.(`discord:guild:${guildId}`)).toBe(name);
  simulator.gateway.drop();
  letIdentify();
  simulator.gateway.expireSessions();
  simulator.removeGuild();
  await until(() => simulator.gateway.counts.identify === 2 && simulator.gateway.isConnected());
  const bo = simulator.person("Bo");
  bo.sends({ channel: simulator.directMessages(bo), text: "hello" });
  await until(() => receiver.events.length === 1);
  expect(await platform.nameOf?.(`discord:guild:${guildId}`)).toBeUndefined();
});
