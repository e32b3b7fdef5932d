import { ChannelType } from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { ParleyError } from "../../../core/errors.ts";
import type { Platform } from "../../../core/platform.ts";
import type { Log } from "../../../core/telemetry.ts";
import { translate } from "../../../words/translate.ts";
import type { SuspensionWatch } from "../../delivery/delivery-scheduler.ts";
import { createEditingReply } from "../../delivery/editing-reply.ts";
import { parseShownFiles } from "../../delivery/message-plan.ts";
import {
  fromReplyAddress,
  idPrefix,
  snowflakeAt,
  toAuthorId,
  toEventKey,
  toRefKey,
  toReplyAddress,
} from "../address.ts";
import { toPrivateSentence, toSentence } from "./content.ts";
import type { FreshTokens } from "../press/acknowledgements.ts";
import type { DiscordApi } from "../transport/api.ts";
import type { Directory } from "../transport/directory.ts";
import { createOwnPosts } from "./destination.ts";
import { createDiscordTarget } from "./reply.ts";
import { createThreads } from "./threads.ts";

/** Opens replies on Discord, by their saved addresses. */
export function createReplies(options: {
  readonly api: DiscordApi;
  readonly directory: Directory;
  readonly freshTokens: FreshTokens;
  /** Returns the bot's user id. */
  readonly botId: () => string;
  readonly suspensions: Pick<SuspensionWatch, "waitMs">;
  /** Discord's time, in Unix milliseconds. */
  readonly now: () => number;
  readonly clock: Clock;
  readonly log: Log;
}): Pick<
  Platform,
  "openReply" | "openThread" | "shownMessageKeys" | "toPrivateAddress" | "tellAlone" | "channelAddress"
> {
  const { api, directory, clock, log } = options;
  const ownPosts = createOwnPosts();
  const threads = createThreads(api, directory, log, clock);

  /** Returns an id after those of the bot's messages in a channel. Discord's clock is known to a second. */
  function lastIdOf(channelId: string): string {
    const last = BigInt(ownPosts.lastIn(channelId) ?? 0);
    const current = snowflakeAt(options.now());
    return (last > current ? last : current).toString();
  }

  return {
    openReply(given, hooks) {
      const address = fromReplyAddress(given);
      const postedAfter = address.postedAfter ?? lastIdOf(address.channelId);
      let shown = address.messages?.length ?? 0;
      let posts = address.posts ?? shown;
      return createEditingReply({
        target: createDiscordTarget({
          ...options,
          address,
          isResumed: hooks.isResumed === true,
          threads,
          ownPosts,
          async shownByOthers(ids) {
            const taken = (await hooks.otherTurnsShow?.(ids.map((id) => toEventKey(id)))) ?? [];
            return ids.filter((id) => taken.includes(toEventKey(id)));
          },
        }),
        savedRefs: address.messages ?? [],
        savedFiles: parseShownFiles(address.files),
        saveRefs(refs, files) {
          posts += Math.max(0, refs.length - shown);
          shown = refs.length;
          const counted = posts === shown ? {} : { posts };
          const shownFiles = files === undefined ? {} : { files: { ...files } };
          return hooks.saveAddress(
            toReplyAddress({ ...address, postedAfter, messages: refs, ...counted, ...shownFiles }),
          );
        },
        log: options.log,
        clock: options.clock,
        suspensions: options.suspensions,
        isCalm: hooks.isCalm === true,
        isEndOnly: hooks.isEndOnly === true,
        stop: hooks.stop,
        placeholder: translate("delivery.status", { status: translate("delivery.thinking") }),
        // Discord shows "thinking…" for a deferred command until the first edit.
        firstMessageIsShown: address.interaction !== undefined && (address.messages ?? []).length === 0,
      });
    },
    shownMessageKeys(given) {
      const { messages = [], files } = fromReplyAddress(given);
      return [...messages, ...(parseShownFiles(files)?.refs ?? [])].map((ref) => toRefKey(ref));
    },
    // A direct message is private already. Elsewhere only interactions have private answers.
    toPrivateAddress: (address) =>
      (fromReplyAddress(address).channelType as ChannelType) === ChannelType.DM ? address : undefined,
    async tellAlone(given, authorId, text) {
      const { channelId, channelType, interaction } = fromReplyAddress(given);
      if (interaction !== undefined && options.now() < interaction.expiresAt)
        return void (await api.followUp(interaction, toPrivateSentence(text)));
      if ((channelType as ChannelType) === ChannelType.DM)
        return void (await api.createMessage(channelId, toSentence(text)));
      const userId = authorId.slice(toAuthorId("").length);
      if (!(await api.tellDirectly(userId, toSentence(text))))
        throw new ParleyError("busy", "too many direct messages were opened lately");
    },
    channelAddress: (channel, name) =>
      toReplyAddress({
        channelId: channel.slice(idPrefix.length),
        channelType: ChannelType.GuildText,
        eventId: name,
      }),
    openThread: (address, { title }) => threads.open(fromReplyAddress(address), title),
  };
}
