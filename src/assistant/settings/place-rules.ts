import type { Access, Asker } from "../../core/access.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Author, Origin } from "../../core/events.ts";
import type { Inbox } from "../../core/inbox.ts";
import { resolveLayers } from "../../core/layered-settings.ts";
import type { Receiver, PlaceSettings } from "../../core/platform.ts";
import type { Budget, PlaceBudgets } from "../../core/spending.ts";
import type { Conversations } from "../../core/storage.ts";
import { channelHolderOf, type Place, type SettingsReader } from "./settings-reader.ts";

/** The rules that the managers of a server, workspace or channel made with `/settings`. */
interface PlaceRules extends PlaceBudgets {
  /** Which messages are for the bot and where it answers. @throws ParleyError `store-unavailable` */
  settingsOf(place: Place): Promise<PlaceSettings>;
  /** @throws ParleyError `access-denied` if a `who-may-use` list leaves them out, or `store-unavailable` */
  expectMayUse(asker: Asker): Promise<void>;
}

/** Creates {@link PlaceRules}. */
export function createPlaceRules(
  reader: Pick<SettingsReader, "readPlaces">,
  access: Pick<Access, "isAdmin">,
): PlaceRules {
  return {
    async settingsOf(place) {
      const effective = resolveLayers(await reader.readPlaces(place));
      return {
        answerTo: effective["answer-to"]?.value ?? "mentions",
        answerIn: effective["answer-in"]?.value ?? "thread",
      };
    },
    async expectMayUse(asker) {
      const { origin } = asker;
      // The list never locks out the people who may change it.
      if (origin === undefined || origin.isManager || access.isAdmin(asker)) return;
      const { server, channel } = await reader.readPlaces(origin);
      const terms = termsOf(origin);
      for (const list of [server?.["who-may-use"], channel?.["who-may-use"]]) {
        if (list === undefined || list.some((term) => terms.has(term))) continue;
        throw new ParleyError("access-denied", "refused by who-may-use", {
          detail: { because: "place", user: origin.user },
        });
      }
    },
    async budgetsFor({ platform, origin, personId }) {
      // The page, which is the operator's own platform, is its own place.
      const place: Place = origin ?? { server: platform };
      const places = await reader.readPlaces(place);
      const ids = { server: place.server, channel: channelHolderOf(place) };
      return (["server", "channel"] as const).flatMap((layer): Budget[] => {
        const { "person-budget": person, "place-budget": place } = places[layer] ?? {};
        const id = ids[layer];
        return [
          ...(person === undefined
            ? []
            : [{ scope: { kind: "person", id: personId }, budgetUsd: person } as const]),
          ...(place === undefined || id === undefined
            ? []
            : [{ scope: { kind: "place", id }, budgetUsd: place } as const]),
        ];
      });
    },
  };
}

function termsOf({ user, server, channel, roles = [] }: Origin): ReadonlySet<string | undefined> {
  return new Set([user, server, channel, ...roles]);
}

/** In so many of the last messages it is looked for more than one person. */
const maxLooked = 50;
const maxLookedChars = 100_000;

/**
 * Creates {@link Receiver.answersTo}. Earlier versions did not mark people's threads, so their conversations
 * have no mark. Those are still answered whole until `/dismiss`.
 */
export function createThreadRules(options: {
  readonly conversations: Pick<Conversations, "settings" | "exists" | "recent">;
  readonly inbox: Pick<Inbox, "listOpenIn">;
  readonly rules: Pick<PlaceRules, "settingsOf">;
}): Receiver["answersTo"] {
  const { conversations, inbox, rules } = options;

  /** Who has written in a conversation, or `undefined` where nothing of it is known. */
  async function writersIn(conversationId: string): Promise<readonly Author[] | undefined> {
    const bounds = { maxMessages: maxLooked, maxChars: maxLookedChars };
    const recent = await conversations.recent(conversationId, bounds);
    if (recent.length > 0)
      return recent.flatMap(({ author, room }) =>
        author === undefined || room?.isApp === true ? [] : [author],
      );
    if (await conversations.exists(conversationId)) return [];
    // Its first message is accepted, but its turn has stored nothing yet.
    const open = (await inbox.listOpenIn(conversationId)).filter(({ event }) => event.inRoom !== true);
    return open.length === 0 ? undefined : open.map(({ event }) => event.author);
  }

  return async (conversationId, place) => {
    const { answerTo: given, room } = await conversations.settings(conversationId);
    if (given === "mentions") return { answerTo: given };
    const { answerTo } = await rules.settingsOf(place);
    if (answerTo !== "mentions") return { answerTo };
    if (given === undefined && room?.isPeoples === true) return undefined;
    const writers = await writersIn(conversationId);
    if (writers === undefined) return undefined;
    const isShared = new Set(writers.map(({ id }) => id)).size > 1;
    return { answerTo: isShared ? "addressed" : "every-message", isDefault: true };
  };
}
