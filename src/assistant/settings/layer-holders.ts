import type { Access, Asker } from "../../core/access.ts";
import type { Author, Origin } from "../../core/events.ts";
import { declarationOf, type Layer, type SettingName } from "../../core/layered-settings.ts";
import { translate } from "../../words/translate.ts";

/** Who does something and where; every event is one. */
export interface Scene extends Asker {
  readonly author: Author;
  /** Absent outside conversations. */
  readonly conversationId?: string | undefined;
}

/** Who or what holds the settings of each layer that exists in a scene. Ids of the store. */
export type LayerHolders = Readonly<Partial<Record<Layer, string>>>;

/** @param access tells the operator's own platform, which is one place, from an event of an unknown place */
export function holdersOf(scene: Scene, access: Pick<Access, "isAdmin">): LayerHolders {
  const { origin, platform, author, conversationId } = scene;
  const server = origin === undefined ? (access.isAdmin(scene) ? platform : undefined) : origin.server;
  const channel = origin === undefined ? undefined : channelHolderOf(origin);
  return {
    ...(server === undefined ? {} : { server }),
    ...(channel === undefined ? {} : { channel }),
    person: author.id,
    ...(conversationId === undefined ? {} : { conversation: conversationId }),
  };
}

/** Where somebody is, as far as settings are concerned. */
export type Place = Pick<Origin, "server" | "channel" | "channelPlace">;

/** Who holds the settings and budgets of the channel. */
export function channelHolderOf({ channel, channelPlace }: Place): string | undefined {
  return channelPlace ?? channel;
}

/** Who held the channel's settings in earlier versions, where that is somebody else. */
export function earlierHolderOf({ channel, channelPlace }: Place): string | undefined {
  return channelPlace === undefined ? undefined : channel;
}

/** Whether the platform is one place by itself, as the page is: without channels, and nobody is with others there. */
export function isOnePlace({ origin, platform }: Asker): boolean {
  return origin === undefined || origin.server === platform;
}

/** Whether a setting means anything in a scene: on the page there are no channels and no other people. */
export function isApplicable(name: SettingName, asker: Asker): boolean {
  return !isOnePlace(asker) || declarationOf(name).isShared !== true;
}

/** A layer in words. `for`: after "for" ("this channel"). `from`: as an origin. `title`: alone. */
export function wordsOf(layer: Layer, asker: Asker, role: "for" | "from" | "title" = "for"): string {
  return translate(`layer.${kindOf(layer, asker)}.${role}`);
}

function kindOf(layer: Layer, asker: Asker): Layer | "page" | "workspace" {
  if (layer !== "server") return layer;
  if (isOnePlace(asker)) return "page";
  return asker.origin?.server?.split(":")[1] === "team" ? "workspace" : "server";
}
