/**
 * Who is called by name in a message: "Lena?", "hey parley, …", "what do you think, Tom?", "佐藤さん、…".
 * A name is a call where it stands as an address, and not where people talk about somebody: "Parley's answer
 * was wrong", "write a mail to Lena". It is decided without a model, in linear time.
 */

/** A word of a text. Words of Chinese characters and kana end where another writing begins. */
interface Word {
  readonly text: string;
  /** In lower case, without accents. */
  readonly plain: string;
  /** The plain word without doubled letters, where somebody has typed a letter three times: "tooom". */
  readonly stretched: string | undefined;
  /** What stands between the previous word and this one. */
  readonly before: string;
}

/** A part of a text up to its end mark. */
interface Sentence {
  readonly words: readonly Word[];
  /** What stands after the last word, with the end mark. */
  readonly end: string;
}

const eastern = String.raw`\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}ー々`;
/** A word, or the end of a sentence. Letters of other writings may be joined: `lena.v`, `s'est`, `anna_k`. */
const token = new RegExp(
  String.raw`[${eastern}]+|(?:[[\p{L}\p{N}\p{M}]--[${eastern}]]|(?<=[\p{L}\p{N}])[.'’_\-](?=[\p{L}\p{N}]))+|[.!?…！？。\n]+`,
  "gv",
);
const isEnd = /^[.!?…！？。\n]/;
const isEastern = new RegExp(`^[${eastern}]`, "v");

const plainOf = (text: string): string =>
  text
    .normalize("NFD")
    .replaceAll(/[\u0300-\u036F]/g, "")
    .normalize("NFC")
    .toLowerCase();

function toSentences(text: string): readonly Sentence[] {
  const sentences: Sentence[] = [];
  let words: Word[] = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(token)) {
    const before = text.slice(end, index);
    const isMarks = isEnd.test(found);
    // A mark within words ends no sentence.
    if (
      isMarks &&
      /^[.!?…]+$/.test(found) &&
      /^\S/.test(text.slice(index + found.length, index + found.length + 1))
    )
      continue;
    end = index + found.length;
    if (!isMarks) words.push({ ...toWord(found), before });
    else if (words.length > 0) {
      sentences.push({ words, end: before + found });
      words = [];
    }
  }
  if (words.length > 0) sentences.push({ words, end: text.slice(end) });
  return sentences;
}

const withoutDoubles = (word: string): string => word.replaceAll(/(.)\1+/gu, "$1");

function toWord(text: string): Omit<Word, "before"> {
  const plain = plainOf(text);
  return { text, plain, stretched: /(.)\1\1/u.test(plain) ? withoutDoubles(plain) : undefined };
}

const isSameWord = (word: Word | undefined, { plain, single }: Part): boolean =>
  word !== undefined && (word.plain === plain || word.stretched === single);

/** How somebody is called in Japanese, and the particles after a name of which something is said. */
const honorific = /^(?:さん|さま|様|ちゃん|くん|君|殿|先生)/u;
const particle = /^(?:は|が|の|を|に|へ|と|も|って|で|から|より)/u;
const askThem = /^に(?:聞|訊|頼|任)(?:いて|んで|せて)(?:み|くだ|下|ね|よ|$)/u;

const setOf = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/));

/** What may stand before the name of whom one calls: greetings, thanks and small words, without accents. */
const fillers = setOf(
  `hey hi hello yo oi ok okay k thanks thank you thx ty cheers sorry please pls good morning afternoon evening night
  dear so well oh ah hm hmm no nope yes yeah yep and but or come on there great nice cool fine
  hallo hi moin servus danke bitte guten morgen tag abend lieber liebe liebes sag mal na ja nein doch und aber also gut super
  salut bonjour bonsoir coucou merci non oui et mais alors tiens bon dis cher chere
  hola oye gracias muchas no si y pero bueno buenos buenas dias tardes noches querido querida perdona vale
  ねえ ねぇ おはよう おはようございます こんにちは こんばんは ありがとう ありがとうございます あの すみません では じゃあ`,
);
/** Verbs that send somebody to ask, and what may stand between them and the name. */
const asking = new Set([
  "ask",
  "frag",
  "frage",
  "fragt",
  "fragen",
  "demande",
  "demandez",
  "demander",
  "pregunta",
  "preguntale",
  "preguntele",
  "preguntad",
  "preguntemos",
]);
const beforeAsking = setOf(
  "just let's lets maybe or then why not don't simply first better mal doch einfach lass uns lasst vielleicht wir peut-etre on mejor",
);
const betweenAsking = new Set([
  "mal",
  "doch",
  "bitte",
  "einfach",
  "auch",
  "lieber",
  "a",
  "à",
  "au",
  "the",
  "den",
  "die",
  "donc",
  "aussi",
  "just",
]);
/** "can parley draw that?" */
const modals = setOf(
  "can could would will should may kann konnte soll sollte darf wird puede podria est-ce que peut",
);
/** What is said about somebody whose name stands first: never an address. */
const aboutVerbs = setOf(
  `said says told tells thinks thought got gets gave gives made makes wrote writes answered answers knows knew
  wants wanted needs had misses missed seems looks works worked helped suggested suggests recommends recommended
  claims claimed and or isn't wasn't doesn't didn't hasn't never always still also keeps
  sagt sagte meint meinte hatte war schreibt schrieb findet fand denkt dachte weiss weiß glaubt antwortet braucht und
  oder auch
  dit disait pense croit etait s'est n'est n'a repond et ou
  dijo dice cree piensa tiene estaba respondio y o`,
);
/** So do these, unless it is a question: "Parley is slow" and "parley is this right?". */
const helperVerbs = setOf(
  "is was has does did can could would should will may must are ist hat kann könnte konnte soll wird darf est a va peut es esta puede ha",
);
const you = setOf("you u ya du dir dich ihr tu toi vous te usted ustedes vos opinas crees");
/** What stands between "you" and a name that is not called: "what did you get from parley?" */
const objectTakers = setOf(
  `ask asked tell told use used using try tried with to by from of for about like than as invite invited trust
  check see saw know the a an and or not my our your that this is was has
  mit von vom zu zum an über uber ueber als laut nach fur für bei und oder nicht den der die das
  avec de du par pour que chez et ou pas le la
  con por para segun que y o el`,
);

/** Names that are also words. They are calls only behind or before a mark, a greeting, or alone. */
const wordNames = setOf(
  `will mark rose max hope grace joy faith may april june august art bill bob frank jack jay drew guy hunter miles
  pat ray rich rob rod ron sky sandy summer autumn amber crystal daisy lily ivy violet iris olive ruby pearl jade
  chase chance chip cliff dale dean don earl glen grant hank heath herb jean jimmy john josh ken lance mason nick
  norm page patience peg penny pierce robin rusty sage sally scout sue ted trip van victor wade wolf ernst kai mai
  falk claire blanche marin constant clement juste aime rosa sol luz mar cruz paz dolores mercedes pilar angel
  blanca clara alba esperanza nieves soledad consuelo`,
);

const hasSeparator = (between: string): boolean => /[,:;，、：!?！？¿¡–—]|\s-\s/u.test(between);

/** A word of a name, and the same without doubled letters. */
interface Part {
  readonly plain: string;
  readonly single: string;
}

/** A name as words, and whether it is an ordinary word too. */
interface Name {
  readonly words: readonly Part[];
  readonly isWord: boolean;
}

/** What people call somebody: the whole names and the first ones, the longest first. */
function toNames(names: readonly string[], isBots: boolean): readonly Name[] {
  const all = new Map<string, Name>();
  for (const name of names) {
    const words = toSentences(name.slice(0, maxNameChars)).flatMap((sentence) =>
      sentence.words.map(({ plain }) => ({ plain, single: withoutDoubles(plain) })),
    );
    for (const some of [words, words.slice(0, 1)]) {
      const { plain: first = "" } = some[0] ?? {};
      if (first.length < 2) continue;
      const isWord = !isBots && some.length === 1 && wordNames.has(first);
      all.set(some.map(({ plain }) => plain).join(" "), { words: some, isWord });
    }
  }
  return [...all.values()].toSorted((one, other) => other.words.length - one.words.length);
}

/** So many characters of a name are compared, and of a long text its beginning and its end. */
const maxNameChars = 100;
const maxEndChars = 2000;

const endsOf = (text: string): string =>
  text.length <= 2 * maxEndChars ? text : `${text.slice(0, maxEndChars)}\n${text.slice(-maxEndChars)}`;

/** Addresses, code and what platforms write between angle brackets. */
function withoutReferences(text: string): string {
  const parts = text.split("```").filter((_, index) => index % 2 === 0);
  return parts
    .join(" ` ")
    .replaceAll(/`[^`\n]*`/g, " ` ")
    .replaceAll(/<[^<>\n]*>/g, " ` ")
    .replaceAll(/\bhttps?:\/\/\S+/g, " ` ");
}

/** Whether a text has words, and not only emoji, links, code or "+1". */
export function hasWords(text: string): boolean {
  const rest = withoutReferences(text).replaceAll(/:[\w+-]{1,40}:/g, " ");
  if (/^\s*[+＋-]\s*[\d０-９]+\s*$/u.test(rest)) return false;
  return /[\p{L}\p{N}]/u.test(rest.replaceAll(/[0-9]\u{FE0F}/gu, ""));
}

/**
 * Whether a text calls somebody by one of their names.
 * @param isBots the names are the bot's: then "what do you think parley?" and "ask parley" count too
 */
export function callsByName(text: string, names: readonly string[], isBots = false): boolean {
  const known = toNames(names, isBots);
  if (known.length === 0) return false;
  return toSentences(withoutReferences(endsOf(text))).some((sentence) =>
    sentence.words.some((_, index) => isCallAt(sentence, index, known, isBots)),
  );
}

function isCallAt(sentence: Sentence, at: number, names: readonly Name[], isBots: boolean): boolean {
  const { words } = sentence;
  const word = words[at]!;
  if (isEastern.test(word.text)) return isEasternCall(sentence, at, names);
  const name = names.find((one) => one.words.every((part, offset) => isSameWord(words[at + offset], part)));
  if (name === undefined) return false;
  const next = words[at + name.words.length];
  const after = next?.before ?? sentence.end;
  // It is a part of an address, a path or a channel's name.
  if (/^[@/\\]\S?/.test(after) || /[#/\\.@]$/.test(word.before.replace(/(?:^|\s)@$/, ""))) return false;
  if (/(?:^|\W)@$/.test(word.before)) return true;
  const earlier = words.slice(0, at);
  const isFirst = earlier.every(({ plain }) => fillers.has(plain));
  const hasGreeting = earlier.length > 0 && isFirst;
  const isApart = earlier.length === 0 || hasSeparator(word.before) || hasGreeting;
  if (next === undefined) {
    if (isFirst) return true;
    if (isAfterComma(earlier, word)) return true;
    return isBots && (isAsked(earlier) || isAskedAtEnd(sentence, earlier));
  }
  if (after === "" && isEastern.test(next.text)) {
    const rest = next.text.replace(honorific, "");
    return askThem.test(rest) || (isApart && (rest === "" || !particle.test(rest)));
  }
  const isMarked = hasSeparator(after);
  if (isMarked && isFirst) return true;
  if (isMarked && hasSeparator(word.before)) return true;
  if (isBots && isAsked(earlier)) return true;
  if (isBots && isQuestion(sentence) && isModalCall(earlier)) return true;
  if (!isFirst || (name.isWord && !hasGreeting)) return false;
  if (aboutVerbs.has(next.plain)) return false;
  if (helperVerbs.has(next.plain))
    return isQuestion(sentence) || you.has(words[at + name.words.length + 1]?.plain ?? "");
  return true;
}

const isQuestion = ({ end }: Sentence): boolean => /[?？]/u.test(end);

/** "so what do you think, Lena", but not "compare Ann, Tom, Lena". */
function isAfterComma(earlier: readonly Word[], { before }: Word): boolean {
  if (!/[,，、:]/u.test(before)) return false;
  const start = earlier.findLastIndex((word) => /[,，、]/u.test(word.before));
  const segment = earlier.slice(Math.max(0, start));
  return start <= 0 || segment.length > 1 || segment.every(({ text }) => isEastern.test(text));
}

/** "just ask parley", "frag doch mal Parley" */
function isAsked(earlier: readonly Word[]): boolean {
  const at = earlier.findLastIndex(
    ({ text }) => asking.has(text.toLowerCase()) || asking.has(plainAsk(text)),
  );
  if (at === -1) return false;
  return (
    earlier.slice(0, at).every(({ plain }) => fillers.has(plain) || beforeAsking.has(plain)) &&
    earlier.slice(at + 1).every(({ plain }) => betweenAsking.has(plain))
  );
}

/** "pregúntale" has its accent where it is said as a request, and "demandé" where it is not. */
const plainAsk = (text: string): string => (text.endsWith("é") ? "" : plainOf(text));

/** "what do you think parley?" */
function isAskedAtEnd(sentence: Sentence, earlier: readonly Word[]): boolean {
  const last = earlier.at(-1)?.plain ?? "";
  return (
    isQuestion(sentence) &&
    earlier.some(({ plain }) => you.has(plain)) &&
    !objectTakers.has(last) &&
    !asking.has(last)
  );
}

function isModalCall(earlier: readonly Word[]): boolean {
  const rest = earlier.filter(({ plain }, index) => !(index < 2 && fillers.has(plain)));
  return rest.length > 0 && rest.length <= 2 && rest.every(({ plain }) => modals.has(plain));
}

/** A word of Chinese characters and kana that begins with a name: "佐藤さん、…", "ゆきちゃん". */
function isEasternCall({ words, end }: Sentence, at: number, names: readonly Name[]): boolean {
  const { text, before } = words[at]!;
  const isFirst = words.slice(0, at).every(({ plain }) => fillers.has(plain));
  if (!isFirst && !hasSeparator(before) && !before.endsWith("@")) return false;
  for (const { words: parts } of names) {
    const full = parts.map(({ plain }) => plain).join("");
    if (!isEastern.test(full)) continue;
    for (let length = Math.min(full.length, text.length); length > 0; length--) {
      const stem = text.slice(0, length);
      const rest = text.slice(length);
      const isCalled = honorific.test(rest);
      if (stem !== full && !(isCalled && (full.startsWith(stem) || full.endsWith(stem)))) continue;
      const left = rest.replace(honorific, "");
      if (isCalled ? !particle.test(left) : left === "" && (words.length === 1 || /\S/.test(end)))
        return true;
    }
  }
  return false;
}
