import type { Clock } from "../../core/clock.ts";
import type { Receiver } from "../../core/platform.ts";
import { isRefusal } from "../../core/errors.ts";
import type { Claims, Records } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Language } from "../../words/languages.ts";
import { inLanguage, translate } from "../../words/translate.ts";
import { systemClock } from "../../support/clock.ts";
import { retryPlatformCall } from "../delivery/platform-retry.ts";
import { toChannelPlace } from "./address.ts";
import { cutText, escapeText } from "./markdown.ts";
import type { Origins } from "./origin.ts";
import type { Identity, SlackApi } from "./web-api.ts";

/** The fields of a `member_joined_channel` event that Parley reads. */
export interface JoinEvent {
  readonly user: string;
  readonly channel: string;
  /** Absent where nobody has invited the user. */
  readonly inviter?: string;
}

/** What {@link createWelcome} needs. */
export interface WelcomeOptions {
  readonly api: Pick<SlackApi, "post">;
  readonly identity: Pick<Identity, "teamId" | "userId">;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "overview">;
  readonly languageOf: (userId: string) => Promise<Language>;
  /** Where it is kept which channels were welcomed. `undefined`: nobody is. */
  readonly kept: { readonly records: Records; readonly claims: Claims } | undefined;
  readonly commandPrefix: string;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
  readonly log: Log;
}

/** Introduces the bot in channels that it is invited to. */
export interface Welcome {
  /**
   * Posts one short message, once a month in a channel at most. Nothing where the rules refuse whoever invited it. Resolves
   * when that is stored; the post follows. @throws ParleyError `store-unavailable`
   */
  joined(event: JoinEvent): Promise<void>;
}

const keptMs = 30 * 24 * 60 * 60_000;
const claimMs = 60_000;
const postWithinMs = 60_000;

/** @see {@link Welcome} */
export function createWelcome(options: WelcomeOptions): Welcome {
  const { api, identity, origins, receiver, kept, commandPrefix, clock = systemClock, log } = options;

  async function post(channel: string): Promise<void> {
    const text = translate("slack.welcome", { command: `\`/${commandPrefix}help\`` });
    const words = cutText(escapeText(text), 3000);
    const content = { text: words, blocks: [{ type: "section", text: { type: "mrkdwn", text: words } }] };
    try {
      await retryPlatformCall(
        () => api.post(channel, undefined, content, { mark: `welcome/${channel}` }),
        clock.monotonic() + postWithinMs,
        undefined,
        clock,
      );
    } catch (error) {
      log.info({ channel, err: error }, "no welcome posted");
    }
  }

  return {
    async joined({ user, channel, inviter }) {
      if (user !== identity.userId || kept === undefined) return;
      const who = { user: inviter ?? user, channel, team: identity.teamId };
      const by = await inLanguage(await options.languageOf(who.user), () => origins.actorOf(who));
      const key = `slack-welcome:${toChannelPlace(identity.teamId, channel)}`;
      try {
        const { language } = await receiver.overview(by);
        if ((await kept.records.get(key)) !== undefined || !(await kept.claims.claim(key, claimMs))) return;
        await kept.records.set(key, true, keptMs);
        void inLanguage(language, () => post(channel));
      } catch (error) {
        if (!isRefusal(error)) throw error;
        log.info({ channel, code: error.code }, "no welcome: the rules refuse it here");
      }
    },
  };
}
