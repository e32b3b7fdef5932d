import { currentLanguage, translateDeclared } from "../words/translate.ts";
import type { Language } from "../words/languages.ts";
import type { Command, ShownNames } from "./command.ts";

type Named = Pick<Command, "name">;

/** What a command is called: its name stays what it is registered and written by. */
export function commandName({ name }: Named, language: Language): string {
  return translateDeclared(language, `command.${name}.name`, name);
}

/** What an option is called. */
export function optionName(name: string, language: Language = currentLanguage()): string {
  return translateDeclared(language, `option-name.${name}`, name);
}

/** What commands and options are called in a language. */
export function namesIn(language: Language): ShownNames {
  return {
    command: (name) => commandName({ name }, language),
    option: (name) => optionName(name, language),
  };
}

/** What a command does. `language`: default the person's. */
export function commandDescription(
  { name, description }: Named & Pick<Command, "description">,
  language: Language = currentLanguage(),
): string {
  return translateDeclared(language, `command.${name}.description`, description);
}

/** What an option of a command is. */
export function optionDescription(
  command: Named & Pick<Command, "options">,
  option: string,
  language: Language = currentLanguage(),
): string {
  const declared = command.options[option]?.description ?? option;
  return translateDeclared(language, `command.${command.name}.option.${option}`, declared);
}

/** The entry of a message command in a message's menu. Empty where the command has none. */
export function menuLabel(
  { name, messageCommand }: Named & Pick<Command, "messageCommand">,
  language: Language = currentLanguage(),
): string {
  return translateDeclared(language, `command.${name}.menu`, messageCommand?.label ?? "");
}

/** An option's name as a label: "Prompt". At most 32 characters. */
export function optionTitle(name: string): string {
  const words = optionName(name).replaceAll(/[-_]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A choice of an option as people see it. */
export function choiceLabel(choice: string, language: Language = currentLanguage()): string {
  return translateDeclared(language, `choice.${choice}`, choice);
}
