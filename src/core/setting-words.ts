import { currentLanguage, translateDeclared } from "../words/translate.ts";
import {
  declarationOf,
  settingGroups,
  type Choice,
  type SettingGroup,
  type SettingName,
} from "./layered-settings.ts";

/** What a setting is, in the person's language. */
export function settingDescription(name: SettingName): string {
  return inWords(`setting.${name}.description`, declarationOf(name).description);
}

/** A setting's name as a label: "Chat model". */
export function settingLabel(name: SettingName): string {
  const words = name.replaceAll("-", " ");
  return inWords(`setting.${name}.label`, words.charAt(0).toUpperCase() + words.slice(1));
}

/** The values of a `choice`, with labels in the person's language. Empty for other settings. */
export function settingChoices(name: SettingName): readonly Choice[] {
  const setting = declarationOf(name);
  if (setting.kind !== "choice") return [];
  return setting.choices.map(({ value, label }) => ({
    value,
    label: inWords(`setting.${name}.choice.${value}`, label),
  }));
}

/** A group's name: alone, or after a place and a colon (`in-label`). */
export function settingGroupTitle(group: SettingGroup, where: "alone" | "in-label" = "alone"): string {
  const title = settingGroups[group];
  return where === "alone"
    ? inWords(`setting-group.${group}`, title)
    : inWords(`setting-group.${group}.in-label`, title.toLowerCase());
}

function inWords(key: string, declared: string): string {
  return translateDeclared(currentLanguage(), key, declared);
}
