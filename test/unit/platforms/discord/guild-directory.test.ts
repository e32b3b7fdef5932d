import { PermissionFlagsBits } from "discord-api-types/v10";
import type { APIOverwrite, GatewayGuildCreateDispatchData } from "discord.js";
import { expect, test } from "vitest";
import { createGuildDirectory } from "../../../../src/platforms/discord/guild-directory.ts";

const history = PermissionFlagsBits.ReadMessageHistory.toString();
const other = PermissionFlagsBits.SendMessages.toString();
const [server, channel, helper, admin, ada] = ["1", "2", "3", "4", "5"] as const;

function directory(everyone: string, overwrites: readonly Partial<APIOverwrite>[]) {
  const guilds = createGuildDirectory();
  const guild = {
    id: server,
    name: "server",
    owner_id: "9",
    roles: [
      { id: server, name: "@everyone", permissions: everyone },
      { id: helper, name: "helper", permissions: other },
      { id: admin, name: "admin", permissions: PermissionFlagsBits.Administrator.toString() },
    ],
    channels: [
      {
        id: channel,
        type: 0,
        name: "general",
        permission_overwrites: overwrites.map((each) => ({ type: 0, allow: "0", deny: "0", ...each })),
      },
    ],
  } as unknown as GatewayGuildCreateDispatchData;
  guilds.add(guild, "8");
  return guilds;
}

test.each<[string, boolean, string, readonly Partial<APIOverwrite>[], readonly string[], string?]>([
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
      { id: ada, type: 1, allow: history },
    ],
    [helper],
  ],
  ["what is denied to the member wins over all", false, history, [{ id: ada, type: 1, deny: history }], []],
  ["administrators have all", true, other, [{ id: ada, type: 1, deny: history }], [admin]],
  ["the owner has all", true, other, [{ id: server, deny: history }], [], "9"],
])("who may see what was said before: %s", (_, expected, everyone, overwrites, roleIds, userId = ada) => {
  const member = { guildId: server, channelId: channel, userId, roleIds };
  expect(directory(everyone, overwrites).readsHistory(member)).toBe(expected);
});

test("a channel that is changed says it anew", () => {
  const guilds = directory(history, [{ id: server, deny: history }]);
  const member = { guildId: server, channelId: channel, userId: ada, roleIds: [] };
  guilds.setChannel(server, { id: channel, type: 0, name: "general" }, []);
  expect(guilds.readsHistory(member)).toBe(true);
  guilds.setChannel(server, { id: channel, type: 0, name: "general" }, [
    { id: ada, type: 1, allow: "0", deny: history },
  ]);
  expect(guilds.readsHistory(member)).toBe(false);
});
