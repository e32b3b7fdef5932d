import { LRUCache } from "lru-cache";
import type { Command } from "../../core/command.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isRefusal } from "../../core/errors.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import { createKeyedQueue } from "../../support/keyed-queue.ts";
import { inLanguage } from "../../words/translate.ts";
import { toHomeView } from "./home-view.ts";
import type { Origins } from "./origin.ts";
import type { SlackApi } from "./web-api.ts";

/** What {@link createAppHome} needs. */
export interface AppHomeOptions {
  readonly api: Pick<SlackApi, "publishHome">;
  readonly origins: Pick<Origins, "actorOf">;
  readonly receiver: Pick<Receiver, "overview" | "forms">;
  readonly commands: ReadonlyMap<string, Command>;
  readonly commandPrefix: string;
  readonly log: Log;
}

/** The Home tabs of the people of one workspace. */
export interface AppHome {
  /** Publishes it for a person who opens it. Never rejects. */
  opened(user: string): Promise<void>;
  /** The same where the person has seen it: something in it has changed. `notice`: a sentence for the person. */
  changed(user: string, notice?: string): Promise<void>;
}

/** People whose Home tab may still be in front of them. */
const maxSeen = 2000;

/** @see {@link AppHome} */
export function createAppHome(options: AppHomeOptions): AppHome {
  const { api, origins, receiver, commands, commandPrefix, log } = options;
  /** Of two that are made at once, the later one stays. */
  const inOrder = createKeyedQueue();
  const seen = new LRUCache<string, true>({ max: maxSeen });

  async function publish(user: string, notice: string | undefined): Promise<void> {
    const by = await origins.actorOf({ user, channel: "", team: undefined });
    const common = { commands, commandPrefix };
    try {
      const overview = await receiver.overview(by);
      const view = inLanguage(overview.language, () =>
        toHomeView({ ...common, overview, offers: receiver.forms.offers(by, undefined), notice }),
      );
      await api.publishHome(user, view);
    } catch (error) {
      log[isRefusal(error) ? "info" : "warn"]({ err: error }, "Slack's Home tab shows no settings and usage");
      const view = toHomeView({ ...common, overview: undefined, offers: [], notice: toNotice(error) });
      await api.publishHome(user, view);
    }
  }

  async function show(user: string, notice?: string): Promise<void> {
    try {
      await inOrder.run(user, () => publish(user, notice));
    } catch (error) {
      log.warn({ err: error }, "Slack's Home tab not published");
    }
  }

  return {
    async opened(user) {
      seen.set(user, true);
      await show(user);
    },
    async changed(user, notice) {
      if (seen.has(user)) await show(user, notice);
    },
  };
}
