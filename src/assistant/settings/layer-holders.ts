import type { Access, Asker } from "../../core/access.ts";
import type { Author } from "../../core/events.ts";
import { declarationOf, type Layer, type SettingName } from "../../core/layered-settings.ts";

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
  const channel = origin?.channel;
  return {
    ...(server === undefined ? {} : { server }),
    ...(channel === undefined ? {} : { channel }),
    person: author.id,
    ...(conversationId === undefined ? {} : { conversation: conversationId }),
  };
}

/** Whether a setting means anything in a scene: on the page there are no channels and no other people. */
export function isApplicable(name: SettingName, { origin }: Pick<Scene, "origin">): boolean {
  return origin !== undefined || declarationOf(name).isShared !== true;
}

/** A layer in words: "this channel". */
export function wordsOf(layer: Layer, { origin }: Asker): string {
  switch (layer) {
    case "server":
      if (origin === undefined) return "this page";
      return origin.server?.split(":")[1] === "team" ? "this workspace" : "this server";
    case "channel":
      return "this channel";
    case "person":
      return "yourself";
    case "conversation":
      return "this conversation";
  }
}
