import { LRUCache } from "lru-cache";
import type { Access } from "../../core/access.ts";
import type {
  Layer,
  LayeredValues,
  LayerChange,
  LayerValues,
  SettingsStore,
} from "../../core/layered-settings.ts";
import type { Conversations, ConversationSettings } from "../../core/storage.ts";
import { createKeyedQueue } from "../../support/keyed-queue.ts";
import {
  channelHolderOf,
  earlierHolderOf,
  holdersOf,
  type LayerHolders,
  type Place,
  type Scene,
} from "./layer-holders.ts";

/** How long a value that was read counts as current: a change in another process shows after that, in milliseconds. */
const freshMs = 2000;
/** Servers, channels and persons whose settings are remembered. */
const maxHolders = 5000;

export interface SettingsReaderOptions {
  readonly store: SettingsStore;
  readonly conversations: Pick<Conversations, "settings" | "saveSettings">;
  readonly access: Pick<Access, "isAdmin">;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Reads and writes the layers. Failures are `store-unavailable`, never a lack of settings. */
export interface SettingsReader {
  /** The values of every layer of a scene: one read of the store for all that are not remembered, and none otherwise. */
  read(scene: Scene): Promise<LayeredValues>;
  /**
   * The values of places. While the store is unavailable, the last known ones: whether a message is for
   * the bot at all must not depend on it.
   */
  readPlaces(place: Place): Promise<LayeredValues>;
  /** Changes a layer; the scene has it. */
  change(layer: Layer, scene: Scene, change: LayerChange): Promise<void>;
  /** Removes the settings of a place that was deleted, or of a person. */
  erase(holder: string): Promise<void>;
}

interface Remembered {
  readonly values: LayerValues;
  readonly readAt: number;
}

/** @see {@link SettingsReader} */
export function createSettingsReader(options: SettingsReaderOptions): SettingsReader {
  const { store, conversations, access, now } = options;
  const remembered = new LRUCache<string, Remembered>({ max: maxHolders });
  const writers = createKeyedQueue();
  /** Counts the changes of this process: a read that one of them overtook is not remembered. */
  let changes = 0;

  async function readHolders(holders: readonly string[]): Promise<ReadonlyMap<string, LayerValues>> {
    const found = new Map<string, LayerValues>();
    const missing: string[] = [];
    const readAt = now();
    for (const holder of holders) {
      const known = remembered.get(holder);
      if (known !== undefined && Math.abs(readAt - known.readAt) < freshMs) found.set(holder, known.values);
      else missing.push(holder);
    }
    if (missing.length === 0) return found;
    const changesBefore = changes;
    const read = await store.read(missing);
    for (const [index, holder] of missing.entries()) {
      const values = read[index] ?? {};
      if (changes === changesBefore) remembered.set(holder, { values, readAt });
      found.set(holder, values);
    }
    return found;
  }

  /** @param earlier where the channel's values are, if the channel itself has none */
  async function readLayers(holders: LayerHolders, earlier: string | undefined): Promise<LayeredValues> {
    const entries = Object.entries(holders).filter(([layer]) => layer !== "conversation");
    const ids = entries.map(([, holder]) => holder);
    const found = await readHolders(earlier === undefined ? ids : [...ids, earlier]);
    const valuesOf = (layer: string, holder: string): LayerValues => {
      const values = found.get(holder) ?? {};
      const isMoved = layer !== "channel" || earlier === undefined || !isEmpty(values);
      return isMoved ? values : (found.get(earlier) ?? {});
    };
    return Object.fromEntries(entries.map(([layer, holder]) => [layer, valuesOf(layer, holder)]));
  }

  /** Changes a channel that several servers share. What an earlier version held for all of them moves to the first. */
  async function changeShared(holder: string, earlier: string, change: LayerChange): Promise<void> {
    const [own = {}, before = {}] = await store.read([holder, earlier]);
    const isMoving = isEmpty(own) && !isEmpty(before);
    await store.change(holder, isMoving ? { ...before, ...change } : change);
    if (isMoving) await store.erase(earlier);
    forget(earlier);
  }

  async function changeConversation(conversationId: string, change: LayerChange): Promise<void> {
    await writers.run(conversationId, async () => {
      const { chosen } = await conversations.settings(conversationId);
      const { "chat-model": model, ...others } = { ...chosen, ...change };
      const kept = Object.entries(others).filter(([, value]) => value !== undefined);
      await conversations.saveSettings(conversationId, {
        ...("chat-model" in change ? { model: model as string | undefined } : {}),
        chosen: Object.fromEntries(kept),
      });
    });
  }

  function forget(holder: string): void {
    changes += 1;
    remembered.delete(holder);
  }

  return {
    async read(scene) {
      const holders = holdersOf(scene, access);
      const [layers, conversation] = await Promise.all([
        readLayers(holders, scene.origin === undefined ? undefined : earlierHolderOf(scene.origin)),
        holders.conversation === undefined ? undefined : conversations.settings(holders.conversation),
      ]);
      return conversation === undefined ? layers : { ...layers, conversation: toLayerValues(conversation) };
    },
    async readPlaces(place) {
      const { server } = place;
      const channel = channelHolderOf(place);
      const places = {
        ...(server === undefined ? {} : { server }),
        ...(channel === undefined ? {} : { channel }),
      };
      try {
        return await readLayers(places, earlierHolderOf(place));
      } catch (error) {
        const known = Object.entries(places).map(
          ([layer, id]) => [layer, remembered.get(id)?.values] as const,
        );
        if (known.some(([, values]) => values === undefined)) throw error;
        return Object.fromEntries(known);
      }
    },
    async change(layer, scene, change) {
      const holder = holdersOf(scene, access)[layer];
      if (holder === undefined) throw new Error(`a scene without the layer ${layer}`);
      if (layer === "conversation") return changeConversation(holder, change);
      const earlier =
        layer === "channel" && scene.origin !== undefined ? earlierHolderOf(scene.origin) : undefined;
      if (earlier === undefined) await store.change(holder, change);
      else await changeShared(holder, earlier, change);
      forget(holder);
    },
    async erase(holder) {
      await store.erase(holder);
      forget(holder);
    },
  };
}

const isEmpty = (values: LayerValues): boolean => Object.keys(values).length === 0;

/** The settings of a conversation as a layer. */
function toLayerValues({ model, chosen = {} }: ConversationSettings): LayerValues {
  return model === undefined ? chosen : { ...chosen, "chat-model": model };
}
