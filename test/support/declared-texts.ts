import type { Command } from "../../src/core/command.ts";
import { declarationOf, settingGroups, settingNames } from "../../src/core/layered-settings.ts";
import { replyButtons } from "../../src/core/press.ts";
import { settingLabel } from "../../src/core/setting-values.ts";

/**
 * Returns the English texts that are declared outside the catalogue, by the keys of their translations. These
 * are commands, their options and choices, the settings of `/settings`, and the buttons below answers.
 */
export function declaredTexts(commands: readonly Command[]): Record<string, string> {
  return { ...settingTexts(), ...commandTexts(commands), ...actionTexts() };
}

function settingTexts(): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [group, title] of Object.entries(settingGroups)) {
    texts[`setting-group.${group}`] = title;
    texts[`setting-group.${group}.in-label`] = title.toLowerCase();
  }
  for (const name of settingNames) {
    const setting = declarationOf(name);
    texts[`setting.${name}.label`] = settingLabel(name);
    texts[`setting.${name}.description`] = setting.description;
    if (setting.kind !== "choice") continue;
    for (const { value, label } of setting.choices) texts[`setting.${name}.choice.${value}`] = label;
  }
  return texts;
}

/** Returns the texts of commands, with their options and choices, likewise. */
export function commandTexts(commands: readonly Command[]): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const command of commands) {
    texts[`command.${command.name}.name`] = command.name;
    texts[`command.${command.name}.description`] = command.description;
    if (command.messageCommand !== undefined)
      texts[`command.${command.name}.menu`] = command.messageCommand.label;
    for (const [name, option] of Object.entries(command.options)) {
      texts[`command.${command.name}.option-name.${name}`] = name;
      texts[`command.${command.name}.option.${name}`] = option.description;
      if (option.kind !== "string") continue;
      for (const choice of option.choices ?? [])
        if (!(settingNames as readonly string[]).includes(choice))
          texts[`command.${command.name}.choice.${choice}`] = choice;
    }
  }
  return texts;
}

function actionTexts(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(replyButtons).map(([kind, { label }]) => [`button.${kind}`, label]),
  );
}
