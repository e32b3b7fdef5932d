import { IntlMessageFormat } from "intl-messageformat";

type Element = ReturnType<IntlMessageFormat["getAst"]>[number];

/** The library numbers its kinds of elements like this. */
const kinds = { literal: 0, argument: 1, number: 2, select: 5, plural: 6, pound: 7 } as const;

const kindOf = ({ type }: Element): number => type;

function parse(text: string): Element[] {
  return new IntlMessageFormat(text, "en", undefined, { ignoreTag: true }).getAst();
}

/**
 * Returns the arguments of a message, sorted. Those that take a number are marked.
 * @throws where the syntax is invalid, and for a kind of argument that the compiler's types do not know
 */
export function argumentsOf(text: string): string[] {
  const found = new Map<string, boolean>();
  for (const element of walk(parse(text))) {
    if (kindOf(element) === kinds.literal || kindOf(element) === kinds.pound) continue;
    if (!("value" in element)) throw new Error(`an element of the type ${element.type}`);
    if (kindOf(element) === kinds.select) throw new Error(`select is not used: ${text}`);
    const isNumber = kindOf(element) === kinds.number || kindOf(element) === kinds.plural;
    found.set(element.value, isNumber || found.get(element.value) === true);
  }
  return [...found].map(([name, isNumber]) => (isNumber ? `${name}:number` : name)).sort();
}

function walk(elements: readonly Element[]): Element[] {
  return elements.flatMap((element) => [
    element,
    ...("options" in element ? Object.values(element.options).flatMap(({ value }) => walk(value)) : []),
  ]);
}

/** Returns plural forms that whole numbers of the language need and a message lacks, or has in vain. */
export function missingBranches(text: string, language: string): string[] {
  const rules = new Intl.PluralRules(language);
  const needed = [...new Set([0, 1, 2, 3, 5, 11, 21].map((number) => rules.select(number)))];
  return walk(parse(text)).flatMap((element) => {
    if (kindOf(element) !== kinds.plural || !("options" in element)) return [];
    const has = Object.keys(element.options);
    // In French, 0 takes the form of 1, so a branch that says "1" would be wrong.
    const one = element.options["one"]?.value ?? [];
    const saysOne = one.some(
      (part) => kindOf(part) === kinds.literal && "value" in part && /\b1\b/.test(part.value),
    );
    return [
      ...needed.filter((form) => !has.includes(form)).map((form) => `"${element.value}" lacks ${form}`),
      ...has
        .filter((form) => !form.startsWith("=") && !(needed as string[]).includes(form))
        .map((form) => `"${element.value}" has ${form}`),
      ...(saysOne && rules.select(0) === "one"
        ? [`"${element.value}" says 1 for 0 too: write {${element.value}} or #`]
        : []),
    ];
  });
}

/** Returns the keys that no source contains, as a literal or as a template literal that yields them. */
export function unusedKeys(keys: readonly string[], sources: readonly string[]): string[] {
  const literals = new Set<string>();
  const templates: RegExp[] = [];
  for (const source of sources) {
    for (const [, literal = ""] of source.matchAll(/["']([a-z][\w.-]+)["']/gi)) literals.add(literal);
    for (const [, placeholder = ""] of source.matchAll(/\{\{([a-z][\w.-]+)\}\}/g)) literals.add(placeholder);
    for (const [, template = ""] of source.matchAll(/`([a-z-]+\.(?:[^`$\s]|\$\{[^}]*\})*)`/g)) {
      const pattern = template
        .split(/\$\{[^}]*\}/)
        .map((part) => part.replaceAll(/[.*+?^$()|[\]\\{}]/g, "\\$&"));
      templates.push(new RegExp(`^${pattern.join("[a-z-]+")}$`));
    }
  }
  return keys.filter((key) => !literals.has(key) && !templates.some((template) => template.test(key)));
}

/** Returns the keys of messages that have neither a letter nor an argument. Joining marks are allowed. */
export function emojiOnlyMessages(messages: Readonly<Record<string, string>>): string[] {
  return Object.entries(messages)
    .filter(([, text]) => !/[\p{L}{]/u.test(text) && !/^[\s,;、]+$/u.test(text))
    .map(([key]) => key);
}

/** A catalogue of another language, brought to the keys of the English one. */
interface CompletedCatalogue {
  readonly messages: Readonly<Record<string, string>>;
  /** The keys that the language lacked. They have the English text, which is to be translated. */
  readonly added: readonly string[];
  /** The keys that English does not have. */
  readonly removed: readonly string[];
}

/** Gives a catalogue the keys that it lacks, each behind the one that it follows in English. */
export function completeCatalogue(
  english: Readonly<Record<string, string>>,
  messages: Readonly<Record<string, string>>,
): CompletedCatalogue {
  const removed = Object.keys(messages).filter((key) => !Object.hasOwn(english, key));
  const added = Object.keys(english).filter((key) => !Object.hasOwn(messages, key));
  const keys = Object.keys(messages).filter((key) => Object.hasOwn(english, key));
  const order = Object.keys(english);
  for (const key of added) {
    const before = order[order.indexOf(key) - 1];
    keys.splice(before === undefined ? 0 : keys.indexOf(before) + 1, 0, key);
  }
  const texts = { ...english, ...messages };
  return { messages: Object.fromEntries(keys.map((key) => [key, texts[key] ?? ""])), added, removed };
}

/**
 * Returns the texts of commands that people of a language read in English. A name may be the same in both.
 */
export function untranslatedCommandTexts(
  commandTexts: Readonly<Record<string, string>>,
  messages: Readonly<Record<string, string>>,
): string[] {
  const isSentence = (key: string): boolean => /^command\.[^.]+\.(?:description|menu|option\.)/.test(key);
  return Object.entries(commandTexts)
    .filter(([key, text]) => messages[key] === undefined || (isSentence(key) && messages[key] === text))
    .map(([key]) => key);
}
