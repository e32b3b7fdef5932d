import { ApiError, missingAccess } from "./api-error.ts";
import type { Route } from "./http.ts";
import { renderMember, renderUser } from "./render.ts";
import type { World } from "./world.ts";

/** Routes of servers. Single members can be read without the privileged intent. */
export function guildRoutes(world: World): Route[] {
  return [
    {
      method: "GET",
      template: "/guilds/{guild_id}/members/{user_id}",
      handle({ parameters }) {
        if (parameters["guild_id"] !== world.guild.id) throw new ApiError(404, 10004, "Unknown Guild");
        if (!world.guild.hasBot) throw missingAccess();
        const user = world.users.get(parameters["user_id"] ?? "");
        if (user === undefined) throw new ApiError(404, 10013, "Unknown User");
        if (!world.guild.members.has(user.id)) throw new ApiError(404, 10007, "Unknown Member");
        return { status: 200, body: { ...renderMember(world, user.id), user: renderUser(user) } };
      },
    },
  ];
}
