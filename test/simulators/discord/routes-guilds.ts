import { ApiError, missingAccess } from "./api-error.ts";
import type { Route } from "./http.ts";
import { renderMember, renderUser } from "./render.ts";
import { findGuild, type World } from "./world.ts";

/** Creates the routes of servers. A single member can be read without the privileged intent. */
export function guildRoutes(world: World): Route[] {
  return [
    {
      method: "GET",
      template: "/guilds/{guild_id}/members/{user_id}",
      handle({ parameters }) {
        const guild = findGuild(world, parameters["guild_id"]);
        if (guild === undefined) throw new ApiError(404, 10004, "Unknown Guild");
        if (!guild.hasBot) throw missingAccess();
        const user = world.users.get(parameters["user_id"] ?? "");
        if (user === undefined) throw new ApiError(404, 10013, "Unknown User");
        if (!guild.members.has(user.id)) throw new ApiError(404, 10007, "Unknown Member");
        return { status: 200, body: { ...renderMember(world, user.id, guild), user: renderUser(user) } };
      },
    },
  ];
}
