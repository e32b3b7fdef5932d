import { textOf, type ChatBody } from "../requests.ts";
import { withoutAuthor } from "./recall.ts";

const verbs =
  /^(?:please )?(?:make|turn|change|paint|tint|rotate|mirror|flip|blur|add|remove|put|darken|brighten)\b/i;
const ordinals = ["first", "second", "third", "fourth"];

/**
 * The line with which Parley's system message lets a model ask for a change of a picture, where the person asks for one.
 * `undefined`: the system message tells of no pictures, or the person asks for something else.
 */
export function askForChange(body: ChatBody): string | undefined {
  const system = body.messages
    .filter(({ role }) => role === "system")
    .map(textOf)
    .join("\n");
  const [, last = ""] = /^<change_picture number="(\d+)">/m.exec(system) ?? [];
  const message = body.messages.findLast(({ role }) => role === "user");
  const request = message === undefined ? "" : withoutAuthor(textOf(message)).slice(0, 2000).trim();
  if (last === "" || !verbs.test(request)) return undefined;
  return `<change_picture number="${numberOf(request, system) ?? last}">${request}</change_picture>`;
}

/** The picture that is named, by its number in a word or by a word of its description. */
function numberOf(request: string, system: string): string | undefined {
  const words: readonly string[] = request.toLowerCase().match(/\p{L}{3,}/gu) ?? [];
  const ordinal = ordinals.findIndex((word) => words.includes(word));
  if (ordinal !== -1) return `${ordinal + 1}`;
  const isNamed = (prompt: string): boolean => {
    const described: readonly string[] = prompt.toLowerCase().match(/\p{L}{3,}/gu) ?? [];
    return words.some((word) => !verbs.test(word) && described.includes(word));
  };
  const listed = [...system.matchAll(/^(\d+): "(.*)"/gm)];
  return listed.findLast(([, , prompt = ""]) => isNamed(prompt))?.[1];
}
