import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { parseArgs } from "node:util";
import { autocomplete, confirm, isCancel, password, text } from "@clack/prompts";
import { helpOf } from "./cli-help.ts";
import { readConfig } from "./config.ts";
import type { Finding } from "./core/checks.ts";
import { isParleyError, ParleyError } from "./core/errors.ts";
import { toProblem, type Question, type SetupPart } from "./core/settings.ts";
import { type CommandIo, createDoctorSections, privateIn } from "./doctor-sections.ts";
import { readEnvFile, setVariables, writeEnvFile, type EnvFile } from "./env-file.ts";
import { listChatModels } from "./gateway/gateway-checks.ts";
import { loadCommands } from "./load-commands.ts";
import { createLog } from "./operations/log.ts";
import {
  toLines,
  exitCodes,
  toExitCode,
  toReportText,
  runChecks,
  type SectionFindings,
} from "./operations/run-checks.ts";
import { toExampleFile } from "./setting-texts.ts";
import { sections, settings } from "./settings.ts";
import { systemClock } from "./support/clock.ts";

/** The {@link CommandIo} of a command that asks questions. */
interface SetupIo extends CommandIo {
  readonly input: Readable;
  readonly output: Writable;
  /** Whether a person types at `input`. */
  readonly isTerminal: boolean;
  /** The folder with `.env`. */
  readonly folder: string;
}

type Variables = Readonly<Record<string, string>>;

const file = ".env";

/**
 * Runs `parley setup`, which asks for the settings or takes them from options, checks them and writes `.env`.
 * Resolves to the exit code: 0 written, 1 something is wrong and nothing was written, 2 wrong options or no
 * terminal for questions.
 * @throws ParleyError `config` if `.env` cannot be read or has lines that are not understood
 */
export async function runSetup(words: readonly string[], io: SetupIo): Promise<number> {
  const options = readOptions(words);
  if ("problem" in options) {
    io.writeError(`${options.problem}\n\n${helpOf("setup") ?? ""}`);
    return exitCodes.notRun;
  }
  const { given, isForced, isChecked } = options;
  const asks = Object.keys(given).length === 0;
  if (asks && !io.isTerminal) {
    io.writeError(
      `There is no terminal to ask at: give the settings as options.\n\n${helpOf("setup") ?? ""}`,
    );
    return exitCodes.notRun;
  }
  const old = await readEnvFile(join(io.folder, file));
  try {
    const before = { ...io.environment, ...old?.values };
    const changes = asks
      ? await askForSettings({ prompter: createPrompter(io), before, old, io })
      : await readFromInput(given, io);
    if (!asks && isChecked && !(await passes(changes, old, isForced, io))) return exitCodes.wrong;
    return await write(changes, old, io);
  } catch (error) {
    if (!isParleyError(error, "stopping")) throw error;
    io.writeError(`${error.message}\n`);
    return exitCodes.wrong;
  }
}

interface SetupOptions {
  readonly given: Variables;
  readonly isForced: boolean;
  readonly isChecked: boolean;
}

function readOptions(words: readonly string[]): SetupOptions | { readonly problem: string } {
  const names = new Map(Object.keys(settings).map((name) => [name.toLowerCase().replaceAll("_", "-"), name]));
  try {
    const { values } = parseArgs({
      args: [...words],
      options: {
        ...Object.fromEntries([...names.keys()].map((flag) => [flag, { type: "string" as const }])),
        force: { type: "boolean" as const },
        "no-check": { type: "boolean" as const },
      },
    });
    const given = Object.entries<string | boolean | undefined>(values).flatMap(([flag, value]) => {
      const name = names.get(flag);
      if (name === undefined || typeof value !== "string") return [];
      const trimmed = value.trim();
      return [
        [
          name,
          settings[name]?.isAddress === true && trimmed !== "-" ? withScheme(trimmed) : trimmed,
        ] as const,
      ];
    });
    return {
      given: Object.fromEntries(given),
      isForced: values["force"] === true,
      isChecked: values["no-check"] !== true,
    };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : "Unknown option." };
  }
}

/** Replaces each option with the value `-` by what a person types, or by a line of standard input. */
async function readFromInput(given: Variables, io: SetupIo): Promise<Variables> {
  const names = Object.keys(given).filter((name) => given[name] === "-");
  // If nothing is read from standard input, it is left to others.
  if (names.length === 0) return given;
  const changes: Record<string, string> = { ...given };
  if (io.isTerminal) {
    const prompter = createPrompter(io);
    for (const name of names) changes[name] = await prompter.ask(name, true);
    return changes;
  }
  const lines = createInterface({ input: io.input, crlfDelay: Infinity });
  const line = lines[Symbol.asyncIterator]();
  for (const name of names) {
    const next = await line.next();
    if (next.done === true) throw cancelled();
    changes[name] = next.value.trim();
  }
  lines.close();
  return changes;
}

/** The models that may chat. The checks say why there are none. */
async function listModels(
  answers: Variables,
  { before }: Pick<SetupDialogue, "before">,
): Promise<readonly string[]> {
  const { config } = readConfig({ ...before, ...answers });
  const baseUrl = config.GATEWAY_BASE_URL;
  if (baseUrl === undefined) return [];
  const log = createLog({ level: "silent", secrets: [], write() {} });
  return await listChatModels({ baseUrl, apiKey: config.GATEWAY_API_KEY, log });
}

/** Whether the new settings may be written, because they are right or `--force` is given. */
async function passes(
  changes: Variables,
  old: EnvFile | undefined,
  isForced: boolean,
  io: SetupIo,
): Promise<boolean> {
  const sections = await check(changes, old, io);
  io.writeOut(toReportText(sections, io.isColoured));
  if (isForced || toExitCode(sections) === exitCodes.right) return true;
  io.writeError("Nothing was written. Correct what is wrong, or add --force.\n");
  return false;
}

/** The doctor's findings with `changes` in force, on one part or on all. */
async function check(
  changes: Variables,
  old: EnvFile | undefined,
  io: SetupIo,
  part?: string,
): Promise<readonly SectionFindings[]> {
  const environment = { ...io.environment, ...old?.values, ...changes };
  const secrets = privateIn(environment);
  const log = createLog({ level: "silent", secrets, write() {} });
  // Only the owner will be able to read the file that is about to be written.
  const sections = await createDoctorSections({
    environment,
    file: { text: "", values: { ...old?.values, ...changes }, isOpenToOthers: false },
    log,
  });
  return await runChecks(
    sections.filter(({ title }) => part === undefined || title === part),
    { isLive: false, secrets, now: () => systemClock.now() },
  );
}

async function write(changes: Variables, old: EnvFile | undefined, io: SetupIo): Promise<number> {
  const names = Object.keys(changes).filter((name) => changes[name] !== (old?.values[name] ?? ""));
  if (names.length === 0) {
    io.writeOut(
      `\nNothing to write: ${old === undefined ? "the defaults are in force" : `${file} has all of this already`}.\n`,
    );
    return exitCodes.right;
  }
  // What was not chosen stays a comment, so that a later version's defaults hold.
  const text = old?.text ?? toExampleFile().replaceAll(/^(?=[A-Z_]+=)/gm, "# ");
  const backup = await writeEnvFile(join(io.folder, file), setVariables(text, changes));
  const kept = backup === undefined ? "" : `; the old one is ${file}.backup`;
  io.writeOut(`\nWrote ${names.join(", ")} to ${file}${kept}.\n`);
  const hidden = names.filter((name) => (io.environment[name] ?? changes[name]) !== changes[name]);
  if (hidden.length > 0)
    io.writeOut(`Note: the environment sets ${hidden.join(", ")} too, and wins over ${file}.\n`);
  io.writeOut("Next: npm start\n");
  return exitCodes.right;
}

type Prompter = ReturnType<typeof createPrompter>;

/** Asks a person at a terminal. Every question throws ParleyError `stopping` at Ctrl+C. */
function createPrompter({ input, output }: Pick<SetupIo, "input" | "output">) {
  const common = { input, output, withGuide: false };
  const answerOf = async <T>(prompt: Promise<T>): Promise<Exclude<T, symbol>> => {
    const answer = await prompt;
    if (isCancel(answer)) throw cancelled();
    return answer as Exclude<T, symbol>;
  };
  return {
    /** Resolves to the line without white space around it. `check` says what is wrong with it. */
    async ask(message: string, isSecret: boolean, check?: (typed: string) => string | undefined) {
      const options = { ...common, message, validate: (typed = "") => check?.(typed.trim()) };
      const typed: string | undefined = await answerOf(isSecret ? password(options) : text(options));
      return typed?.trim() ?? "";
    },
    /** Resolves to yes or no. Enter means `initialValue`. */
    confirm: (message: string, initialValue: boolean) =>
      answerOf(confirm({ ...common, message, initialValue })),
    /** Resolves to the value of one of the options, which typing narrows down. */
    choose: (message: string, options: { value: string; label: string }[], initialValue: string) =>
      answerOf(autocomplete({ ...common, message, options, initialValue, maxItems: 12 })),
    say: (words: string) => void output.write(words),
  };
}

function cancelled(): ParleyError {
  return new ParleyError("stopping", "Cancelled: nothing was written.");
}

/** What the dialogue needs. */
interface SetupDialogue {
  readonly prompter: Prompter;
  /** The settings in force before. */
  readonly before: Readonly<Record<string, string | undefined>>;
  readonly old: EnvFile | undefined;
  readonly io: SetupIo;
}

/** Returns the doctor's findings about one part with these answers. */
async function findingsOf(
  part: string,
  answers: Variables,
  { old, io }: SetupDialogue,
): Promise<readonly Finding[]> {
  const [section] = await check(answers, old, io, part);
  return section?.findings ?? [];
}

/** A part of setup under its title, which is the section's. */
type Part = SetupPart & { readonly title: string };

/** What is said before a setting is asked for. */
const hints: Readonly<Record<string, (answers: Variables, dialogue: SetupDialogue) => Promise<string>>> = {
  SLACK_BOT_TOKEN: sayManifestAddress,
};

/** Asks more at the end of a part. */
const lastQuestions: Readonly<
  Record<string, (answers: Record<string, string>, dialogue: SetupDialogue) => Promise<void>>
> = { Gateway: askModel };

/**
 * Asks for the settings part by part, and checks each part before the next one. Resolves to the variables
 * whose values change.
 * @throws ParleyError `stopping` if the person cancels
 */
async function askForSettings(dialogue: SetupDialogue): Promise<Variables> {
  const { prompter } = dialogue;
  const answers: Record<string, string> = {};
  prompter.say("Parley's setup. Enter keeps what is in [brackets]. Nothing is written before the end.\n");
  const parts = sections.flatMap(({ heading, setup }) =>
    setup === undefined ? [] : { ...setup, title: heading },
  );
  for (const [index, part] of parts.entries()) {
    prompter.say(`\n${index + 1}/${parts.length} ${part.title}\n${part.intro}\n`);
    const { isWanted } = part;
    const isSkipped =
      isWanted !== undefined &&
      inForce(isWanted.is, answers, dialogue) === "" &&
      !(await prompter.confirm(isWanted.text, false));
    if (!isSkipped) await askPart(part, answers, dialogue);
  }
  await offerEncryption(answers, dialogue);
  return answers;
}

/** Asks again until nothing is wrong or the person keeps the answers. */
async function askPart(part: Part, answers: Record<string, string>, dialogue: SetupDialogue): Promise<void> {
  const { prompter } = dialogue;
  for (;;) {
    for (const name of part.asks) {
      const question = settings[name]?.question;
      if (question === undefined || !isAsked(question, part, answers, dialogue)) continue;
      const hint = await hints[name]?.(answers, dialogue);
      if (hint !== undefined) prompter.say(hint);
      const value = await (question.yes === undefined
        ? askOne(name, question, answers, dialogue)
        : askYesNo(name, question, question.yes, answers, dialogue));
      if (question.isGate === true && value === "") return;
    }
    if (part.checkedBy === undefined) prompter.say("Checking…\n");
    const found = await findingsOf(part.checkedBy ?? part.title, answers, dialogue);
    const own =
      part.checkedBy === undefined ? found : found.filter(({ subject }) => part.asks.includes(subject));
    if (!(await isKept(own, dialogue))) continue;
    await lastQuestions[part.title]?.(answers, dialogue);
    return;
  }
}

function isAsked({ when }: Question, { title }: Part, answers: Variables, dialogue: SetupDialogue): boolean {
  if (when === undefined) return true;
  const { config } = readConfig({ ...dialogue.before, ...answers });
  const isOn = config.platforms.some((platform) => platform.isOn && platform.module.title === title);
  return when((name) => inForce(name, answers, dialogue), isOn);
}

/** Says where Slack's app is created, with the prefix that was just chosen. Not for an app that exists. */
async function sayManifestAddress(answers: Variables, { before }: SetupDialogue): Promise<string> {
  if ((answers["SLACK_BOT_TOKEN"] ?? before["SLACK_BOT_TOKEN"] ?? "") !== "") return "";
  const { config } = readConfig({ ...before, ...answers });
  const slack = config.platforms.find(({ module }) => module.id === "slack");
  const manifest = await slack?.module.tools["slack-manifest"]?.run(slack.values, await loadCommands());
  if (manifest === undefined) return "";
  const json = encodeURIComponent(JSON.stringify(JSON.parse(manifest)));
  return `Open this address to create the app (one line; \`npm run --silent slack:manifest\` prints the manifest alone):

https://api.slack.com/apps?new_app=1&manifest_json=${json}

Then Install App → Install to Workspace, and copy the Bot User OAuth Token.
`;
}

/** Shows the findings. Returns whether the answers stay, because they are right or the person wants them. */
async function isKept(findings: readonly Finding[], { prompter, io }: SetupDialogue): Promise<boolean> {
  if (findings.length > 0) prompter.say(`${toLines(findings, io.isColoured)}\n`);
  if (!findings.some(({ level }) => level === "wrong")) return true;
  return await prompter.confirm("Keep these answers anyway?", false);
}

/** Asks for the default model with the gateway's list. */
async function askModel(answers: Record<string, string>, dialogue: SetupDialogue): Promise<void> {
  const { prompter } = dialogue;
  const models = await listModels(answers, dialogue);
  const question = { text: "Model for chat (empty: the first that can)" };
  for (;;) {
    const old = inForce("CHAT_MODEL", answers, dialogue);
    const listed = [...new Set([...models, ...(old === "" ? [] : [old])])];
    const value =
      models.length === 0
        ? await askOne("CHAT_MODEL", question, answers, dialogue)
        : await prompter.choose(
            "Model for chat (type to search)",
            [{ value: "", label: "the first that can" }, ...listed.map((id) => ({ value: id, label: id }))],
            old,
          );
    setAnswer("CHAT_MODEL", value, answers, dialogue);
    if (value === "") return;
    const found = (await findingsOf("Gateway", answers, dialogue)).filter(
      ({ subject }) => subject === "Chat model",
    );
    if (await isKept(found, dialogue)) return;
  }
}

async function askYesNo(
  name: string,
  { text }: Question,
  yes: NonNullable<Question["yes"]>,
  answers: Record<string, string>,
  dialogue: SetupDialogue,
): Promise<string> {
  const old = inForce(name, answers, dialogue);
  const isYes = yes.is(old);
  const wantsYes = await dialogue.prompter.confirm(text, isYes);
  if (wantsYes !== isYes) setAnswer(name, wantsYes ? yes.value : "", answers, dialogue);
  return inForce(name, answers, dialogue);
}

/** Records an answer. A value as before is no answer. */
function setAnswer(
  name: string,
  value: string,
  answers: Record<string, string>,
  { before }: SetupDialogue,
): void {
  if (value === (before[name]?.trim() ?? "")) delete answers[name];
  else answers[name] = value;
}

function inForce(name: string, answers: Variables, { before }: SetupDialogue): string {
  return answers[name] ?? before[name]?.trim() ?? "";
}

/** Resolves to the value in force. It asks again after a malformed value. */
async function askOne(
  name: string,
  { text }: Question,
  answers: Record<string, string>,
  dialogue: SetupDialogue,
): Promise<string> {
  const setting = settings[name];
  const old = inForce(name, answers, dialogue);
  const isSecret = setting?.isSecret !== undefined;
  const usual = setting?.schema.safeParse(undefined).data;
  const kept = old === "" && typeof usual === "string" ? usual : old;
  const removal = old === "" ? "" : " (- removes it)";
  const shown = kept === "" ? "" : ` [${isSecret ? "set" : withoutPassword(kept)}]${removal}`;
  const toValue = (typed: string): string =>
    typed === "" ? old : typed === "-" ? "" : setting?.isAddress === true ? withScheme(typed) : typed;
  const typed = await dialogue.prompter.ask(`${text}${shown}`, isSecret, (unchecked) => {
    const result = setting?.schema.safeParse(toValue(unchecked) === "" ? undefined : toValue(unchecked));
    if (result?.success !== false) return undefined;
    return `${name} ${result.error.issues.map((issue) => toProblem(issue)).join(", ")}`;
  });
  setAnswer(name, toValue(typed), answers, dialogue);
  return toValue(typed);
}

async function offerEncryption(
  answers: Record<string, string>,
  { prompter, before }: SetupDialogue,
): Promise<void> {
  if ((before["STORE_ENCRYPTION_KEYS"] ?? "") !== "") return;
  if (!(await prompter.confirm("Encrypt what people wrote, with a new key?", false))) return;
  answers["STORE_ENCRYPTION_KEYS"] = randomBytes(32).toString("base64");
  prompter.say("  Keep a copy of STORE_ENCRYPTION_KEYS elsewhere: without it nobody can read the store.\n");
}

/** Puts the scheme before a bare address: `http://` before one of this machine or network, with a port. */
function withScheme(typed: string): string {
  if (typed.includes("://") || !URL.canParse(`http://${typed}`)) return typed;
  const { hostname, port } = new URL(`http://${typed}`);
  const isNear = port !== "" || /^(?:localhost|[\d.]+|\[.*\])$/.test(hostname);
  return `${isNear ? "http" : "https"}://${typed}`;
}

function withoutPassword(value: string): string {
  return value.replace(/:\/\/[^\s/@]+@/, "://…@");
}
