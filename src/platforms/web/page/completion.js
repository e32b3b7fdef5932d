/** @typedef {import("../views.ts").CommandView} Command */
/** @typedef {import("../views.ts").OptionView} Option */
/** @typedef {{ insert: string, label: string, detail: string }} Suggestion */
/**
 * @typedef {object} Completion
 * @property {"command" | "option" | "value"} kind
 * @property {number} from where the completed word begins
 * @property {number} to where it ends
 * @property {readonly Suggestion[]} suggestions
 * @property {boolean} isEager true: Enter accepts the first suggestion; false: Enter sends the message
 * @property {string} [modelQuery] set when the suggestions are model ids, which the caller loads
 * @property {Option["operation"]} [modelOperation] what these models can do; default anything
 */

/**
 * Returns the command that a text begins with.
 * @param {string} text
 * @param {readonly Command[]} commands
 * @returns {Command | undefined}
 */
export function commandOf(text, commands) {
  const name = /^\/([a-z0-9_-]+)(?=\s|$)/i.exec(text)?.[1]?.toLowerCase();
  return commands.find((command) => command.name === name);
}

/**
 * Completes the word before the caret.
 * @param {string} text
 * @param {number} caret
 * @param {readonly Command[]} commands
 * @returns {Completion | undefined}
 */
export function complete(text, caret, commands) {
  const before = text.slice(0, caret);
  const typedName = /^\/([a-z0-9_-]*)$/i.exec(before)?.[1]?.toLowerCase();
  if (typedName !== undefined) return completeCommand(text, typedName, commands);
  const command = commandOf(text, commands);
  if (command === undefined) return undefined;
  const word = lastWord(before);
  const from = caret - word.length;
  const [, name = "", value] = /^([a-z0-9_-]+):(\S*)$/i.exec(word) ?? [];
  const option = command.options.find((other) => other.name === name.toLowerCase());
  if (option !== undefined && value !== undefined) return completeValue(option, value, from, caret);
  return completeOption(command, text, word, from, caret);
}

/**
 * Returns what follows the last white space. It searches from the end, since `/\S*$/` takes quadratic time.
 * @param {string} text
 */
function lastWord(text) {
  let start = text.length;
  while (start > 0 && !/\s/.test(text.charAt(start - 1))) start -= 1;
  return text.slice(start);
}

/**
 * @param {string} text
 * @param {string} typed
 * @param {readonly Command[]} commands
 * @returns {Completion | undefined}
 */
function completeCommand(text, typed, commands) {
  const starting = commands.filter((command) => command.name.startsWith(typed));
  const containing = commands.filter(
    (command) => !command.name.startsWith(typed) && typed.length > 1 && command.name.includes(typed),
  );
  const suggestions = [...starting, ...containing].map((command) => ({
    insert: `/${command.name} `,
    label: `/${command.name}`,
    detail: command.description,
  }));
  if (suggestions.length === 0) return undefined;
  const end = /^\/\S*/.exec(text)?.[0].length ?? 0;
  const isExact = starting.some((command) => command.name === typed);
  return { kind: "command", from: 0, to: end, suggestions, isEager: !isExact };
}

/**
 * @param {Option} option
 * @param {string} value
 * @param {number} from
 * @param {number} to
 * @returns {Completion | undefined}
 */
function completeValue(option, value, from, to) {
  if (option.completesModels) {
    const { operation: modelOperation } = option;
    return {
      kind: "value",
      from,
      to,
      suggestions: [],
      isEager: value !== "",
      modelQuery: value,
      modelOperation,
    };
  }
  const matching = option.values.filter((other) => other.toLowerCase().startsWith(value.toLowerCase()));
  if (matching.length === 0) return undefined;
  return {
    kind: "value",
    from,
    to,
    suggestions: matching.map((other) => toValue(option.name, other)),
    isEager: !matching.includes(value),
  };
}

/**
 * Suggests a value for an option, quoted when it has spaces.
 * @param {string} name
 * @param {string} value
 * @returns {Suggestion}
 */
export function toValue(name, value) {
  return { insert: `${name}:${/\s/.test(value) ? `"${value}"` : value} `, label: value, detail: "" };
}

/**
 * Completes option names after their first letter. Enter still sends, since the word may be in the prompt.
 * @param {Command} command
 * @param {string} text
 * @param {string} word
 * @param {number} from
 * @param {number} to
 * @returns {Completion | undefined}
 */
function completeOption(command, text, word, from, to) {
  const isFirst = /^\/\S+\s+$/.test(text.slice(0, from)) && word === "";
  if (word === "" && !isFirst) return undefined;
  const suggestions = command.options
    .filter((option) => option.name !== command.freeText && option.kind !== "attachment")
    .filter((option) => option.name.startsWith(word.toLowerCase()) && !text.includes(`${option.name}:`))
    .map((option) => ({ insert: `${option.name}:`, label: `${option.name}:`, detail: option.description }));
  return suggestions.length === 0 ? undefined : { kind: "option", from, to, suggestions, isEager: false };
}

/**
 * Returns the text and caret after a suggestion is accepted.
 * @param {string} text
 * @param {Completion} completion
 * @param {Suggestion} suggestion
 */
export function accept(text, completion, suggestion) {
  const rest = text.slice(completion.to).replace(/^ /, "");
  const start = text.slice(0, completion.from) + suggestion.insert;
  return { text: start + rest, caret: start.length };
}
