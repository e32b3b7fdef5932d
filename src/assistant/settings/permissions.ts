import type { Access } from "../../core/access.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Layer } from "../../core/layered-settings.ts";
import { holdersOf, wordsOf, type Scene } from "./layer-holders.ts";

const absent: Readonly<Record<Layer, string>> = {
  server: "There is no server or workspace here.",
  channel: "There is no channel here.",
  person: "It is not known who you are.",
  conversation: "This is no conversation: use it in a thread or in direct messages.",
};

/** Whether somebody may change the settings of a layer that exists in the scene. */
export function mayChange(layer: Layer, scene: Scene, access: Pick<Access, "isAdmin">): boolean {
  if (holdersOf(scene, access)[layer] === undefined) return false;
  if (layer === "person" || layer === "conversation") return true;
  return scene.origin?.isManager === true || access.isAdmin(scene);
}

/** @throws ParleyError `not-permitted`, with the reason: no such layer here, or no right to change it */
export function expectMayChange(layer: Layer, scene: Scene, access: Pick<Access, "isAdmin">): void {
  if (mayChange(layer, scene, access)) return;
  const problem =
    holdersOf(scene, access)[layer] === undefined
      ? absent[layer]
      : `Only those who manage ${wordsOf("server", scene)}, and Parley's admins, can change the settings of ${wordsOf(layer, scene)}.`;
  throw new ParleyError("not-permitted", `settings of the layer ${layer} are not open to this person`, {
    detail: { problem },
  });
}
