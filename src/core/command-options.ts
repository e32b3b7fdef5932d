import { freeTextOption, usageOf, type Command, type Option, type OptionValues } from "./command.ts";
import { ParleyError } from "./errors.ts";
import type { Attachment, RawOption } from "./events.ts";
import { isPublicHost } from "./public-address.ts";
import { translate } from "../words/translate.ts";

const assignment = /(?:^|\s)([a-z0-9_-]{1,32}):("[^"]*"|\S+)/gi;

/**
 * Reads options out of a line of text: `name:value` or `name:"several words"` anywhere, for the names the command
 * has; the rest is its free text. `image:https://…` becomes a link attachment. Values stay unchecked.
 */
export function parseCommandText(command: Command, text: string): Record<string, RawOption> {
  const options: Record<string, RawOption> = {};
  const rest = text.replace(assignment, (whole: string, rawName: string, rawValue: string) => {
    const name = rawName.toLowerCase();
    const option = command.options[name];
    // What must be said in words may itself contain "prompt: …"; an optional one can only be meant by its name.
    if (option === undefined || (name === freeTextOption(command) && option.required === true)) return whole;
    const value = rawValue.startsWith('"') ? rawValue.slice(1, -1) : rawValue;
    options[name] = option.kind === "attachment" ? linkAttachment(value) : value;
    return "";
  });
  const free = freeTextOption(command);
  const freeText = rest.trim();
  if (freeText === "") return options;
  if (free === undefined) {
    throw new ParleyError("invalid-option", `command ${command.name} takes no free text`, {
      detail: { command: command.name, problem: translate("option.no-free-text"), usage: usageOf(command) },
    });
  }
  const named = options[free];
  options[free] = typeof named === "string" ? `${named} ${freeText}` : freeText;
  return options;
}

function linkAttachment(url: string): Attachment {
  return { id: url, name: url.split(/[?#]/)[0]?.split("/").at(-1) ?? "link", source: { url }, linkUrl: url };
}

/**
 * Checks raw values against the declaration and gives them their types.
 * @throws ParleyError `invalid-option`; `detail.option` and `detail.problem` say which option and what to do
 */
export function parseOptions(
  command: Command,
  raw: Readonly<Record<string, RawOption>>,
): OptionValues<Readonly<Record<string, Option>>> {
  const values: Record<string, string | number | boolean | Attachment> = {};
  for (const name of Object.keys(raw)) {
    if (command.options[name] === undefined) throw invalidOption(command, name, translate("option.unknown"));
  }
  for (const [name, option] of Object.entries(command.options)) {
    const given = raw[name];
    if (given === undefined || given === "") {
      if (option.required === true) throw invalidOption(command, name, translate("option.needed"));
      continue;
    }
    values[name] = parseOption(command, name, option, given);
  }
  return values as OptionValues<Readonly<Record<string, Option>>>;
}

function parseOption(command: Command, name: string, option: Option, given: RawOption) {
  switch (option.kind) {
    case "string": {
      if (typeof given !== "string") throw invalidOption(command, name, translate("option.text"));
      const maxChars = option.maxChars ?? 6000;
      if (given.length > maxChars)
        throw invalidOption(command, name, translate("option.too-long", { max: maxChars }));
      if (option.choices !== undefined && !option.choices.includes(given))
        throw invalidOption(
          command,
          name,
          translate("option.choice", { choices: option.choices.join(", ") }),
        );
      return given;
    }
    case "integer": {
      const number = typeof given === "string" ? Number(given) : given;
      if (
        typeof number !== "number" ||
        !Number.isInteger(number) ||
        number < option.min ||
        number > option.max
      )
        throw invalidOption(command, name, translate("option.integer", { min: option.min, max: option.max }));
      return number;
    }
    case "boolean": {
      if (typeof given === "boolean") return given;
      if (given === "true" || given === "yes" || given === "on") return true;
      if (given === "false" || given === "no" || given === "off") return false;
      throw invalidOption(command, name, translate("option.boolean"));
    }
    case "attachment": {
      if (typeof given !== "object") throw invalidOption(command, name, translate("option.file"));
      if (given.linkUrl !== undefined && !isPublicHttps(given.linkUrl))
        throw invalidOption(command, name, translate("option.address"));
      return given;
    }
  }
}

/** The address is handed to a gateway, which may download it inside its own network. */
function isPublicHttps(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, username, password, hostname } = new URL(address);
  return protocol === "https:" && username === "" && password === "" && isPublicHost(hostname);
}

/** The error of an option that cannot be taken; `problem` follows the option's name in a sentence. */
export function invalidOption(command: Command, option: string, problem: string): ParleyError {
  return new ParleyError("invalid-option", `command ${command.name}, option ${option}: ${problem}`, {
    detail: { command: command.name, option, problem, usage: usageOf(command) },
  });
}
