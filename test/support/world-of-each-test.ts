import { afterEach, beforeEach, vi } from "vitest";
import { createWorld, type World, type WorldOptions } from "./assistant-world.ts";

/** A {@link World} that is another one in each test of a file. */
export interface EachWorld extends World {
  /** Closes the world of this test and opens another one. */
  renew(options: WorldOptions): Promise<void>;
}

/** Gives each test of a file its own world. Spies are taken off before it is closed. */
export function worldOfEachTest(options: WorldOptions | (() => Promise<WorldOptions>) = {}): EachWorld {
  let world: World | undefined;
  async function renew(next: WorldOptions): Promise<void> {
    vi.restoreAllMocks();
    await world?.close();
    world = await createWorld(next);
  }
  beforeEach(async () => await renew(typeof options === "function" ? await options() : options));
  afterEach(async () => {
    vi.restoreAllMocks();
    await world?.close();
    world = undefined;
  });
  return new Proxy({ renew } as EachWorld, {
    get: (own, name) => Reflect.get(name in own ? own : (world ?? {}), name) as unknown,
  });
}
