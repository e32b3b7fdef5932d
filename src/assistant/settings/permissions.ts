import type { Access } from "../../core/access.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Layer } from "../../core/layered-settings.ts";
import { holdersOf, wordsOf, type Scene } from "./layer-holders.ts";
import { translate } from "../../words/translate.ts";

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
      ? translate(`settings.absent.${layer}`)
      : translate("settings.not-manager", {
          server: wordsOf("server", scene),
          place: wordsOf(layer, scene),
        });
  throw new ParleyError("not-permitted", `settings of the layer ${layer} are not open to this person`, {
    detail: { problem },
  });
}
