import { randomBytes } from "node:crypto";
import { settings } from "./config.ts";
import type { Finding } from "./core/checks.ts";
import { toProblem } from "./core/settings.ts";
import { toLines } from "./operations/doctor-report.ts";
import type { Prompter } from "./operations/prompter.ts";

/** What the dialogue works with. */
export interface SetupDialogue {
  readonly prompter: Prompter;
  /** The settings in force before. */
  readonly before: Readonly<Record<string, string | undefined>>;
  /** The doctor's findings about one part, with these answers in force. */
  readonly check: (part: string, answers: Readonly<Record<string, string>>) => Promise<readonly Finding[]>;
  readonly isColoured: boolean;
}

interface Question {
  readonly name: string;
  readonly text: string;
  /** The part is left out when this one is answered with nothing. */
  readonly isGate?: true;
  /** Not asked where this setting has a value. */
  readonly unless?: string;
}

interface Part {
  readonly title: string;
  readonly intro: string;
  readonly questions: readonly Question[];
}

const parts: readonly Part[] = [
  {
    title: "Discord",
    intro: `Create an application at https://discord.com/developers/applications; under Bot turn on
the Message Content Intent and press Reset Token (docs/discord.md). Empty: no Discord.`,
    questions: [{ name: "DISCORD_TOKEN", text: "Bot token", isGate: true }],
  },
  {
    title: "Slack",
    intro: `Create an app from the manifest that \`npm run --silent slack:manifest\` prints, at
https://api.slack.com/apps, and install it (docs/slack.md). Empty: no Slack.`,
    questions: [
      { name: "SLACK_BOT_TOKEN", text: "Bot token (xoxb-…)", isGate: true },
      { name: "SLACK_APP_TOKEN", text: "App-level token with connections:write (xapp-…; empty: HTTP mode)" },
      {
        name: "SLACK_SIGNING_SECRET",
        text: "Signing secret, of Basic Information",
        unless: "SLACK_APP_TOKEN",
      },
      {
        name: "SLACK_PUBLIC_URL",
        text: "Where Slack reaches this server (https://…)",
        unless: "SLACK_APP_TOKEN",
      },
    ],
  },
  {
    title: "Gateway",
    intro: `The address of any OpenAI-compatible server, without /v1. Empty: the embedded sandbox,
which answers by rules (docs/gateway.md).`,
    questions: [
      { name: "GATEWAY_BASE_URL", text: "Address", isGate: true },
      { name: "GATEWAY_API_KEY", text: "Key (empty: none)" },
      { name: "CHAT_MODEL", text: "Model for chat (empty: the first that can)" },
    ],
  },
  {
    title: "Store",
    intro:
      "A file, or a server shared by several instances: redis://user:password@host:6379/0 or postgres://user:password@host:5432/database.",
    questions: [{ name: "STORE_URL", text: "Store" }],
  },
];

/**
 * Asks for the settings, part by part, and checks each part before the next one. Resolves to what is to be written:
 * variables whose value changes.
 * @throws ParleyError `stopping` when the person cancels
 */
export async function askForSettings(dialogue: SetupDialogue): Promise<Readonly<Record<string, string>>> {
  const { prompter } = dialogue;
  const answers: Record<string, string> = {};
  prompter.say(
    "Parley's setup. Enter keeps what is in [brackets], - removes it. Nothing is written before the end.\n",
  );
  for (const [index, part] of parts.entries()) {
    prompter.say(`\n${index + 1}/${parts.length} ${part.title}\n${part.intro}\n`);
    await askPart(part, answers, dialogue);
  }
  await offerEncryption(answers, dialogue);
  return answers;
}

/** Asks again while something is wrong, until it is right or kept. */
async function askPart(part: Part, answers: Record<string, string>, dialogue: SetupDialogue): Promise<void> {
  const { prompter, check, isColoured } = dialogue;
  for (;;) {
    let isUsed = true;
    for (const question of part.questions) {
      if (!isUsed || (question.unless !== undefined && inForce(question.unless, answers, dialogue) !== ""))
        continue;
      const value = await askOne(question, answers, dialogue);
      if (question.isGate === true && value === "") isUsed = false;
    }
    if (!isUsed) return;
    prompter.say("Checking…\n");
    const findings = await check(part.title, answers);
    prompter.say(`${toLines(findings, isColoured)}\n`);
    if (!findings.some(({ level }) => level === "wrong")) return;
    if (await confirm(prompter, "Keep these answers anyway? [y/N] ")) return;
  }
}

function inForce(name: string, answers: Record<string, string>, { before }: SetupDialogue): string {
  return answers[name] ?? before[name]?.trim() ?? "";
}

/** Resolves to the value in force. A value that is malformed is asked for again. */
async function askOne(
  { name, text }: Question,
  answers: Record<string, string>,
  dialogue: SetupDialogue,
): Promise<string> {
  const { prompter, before } = dialogue;
  const setting = settings[name];
  const old = inForce(name, answers, dialogue);
  const isSecret = setting?.isSecret === true;
  const usual = setting?.schema.safeParse(undefined).data;
  const kept = old === "" && typeof usual === "string" ? usual : old;
  const shown = kept === "" ? "" : ` [${isSecret ? "set" : withoutPassword(kept)}]`;
  for (;;) {
    const typed = await prompter.ask(`${text}${shown}: `, { isSecret });
    const value = typed === "" ? old : typed === "-" ? "" : typed;
    const result = setting?.schema.safeParse(value === "" ? undefined : value);
    if (result?.success === false) {
      prompter.say(`  ${name} ${result.error.issues.map((issue) => toProblem(issue)).join(", ")}\n`);
      continue;
    }
    if (value !== (before[name]?.trim() ?? "")) answers[name] = value;
    else delete answers[name];
    return value;
  }
}

async function offerEncryption(
  answers: Record<string, string>,
  { prompter, before }: SetupDialogue,
): Promise<void> {
  if ((before["STORE_ENCRYPTION_KEYS"] ?? "") !== "") return;
  if (!(await confirm(prompter, "Encrypt what people wrote, with a new key? [y/N] "))) return;
  answers["STORE_ENCRYPTION_KEYS"] = randomBytes(32).toString("base64");
  prompter.say("  Keep a copy of STORE_ENCRYPTION_KEYS elsewhere: without it nobody can read the store.\n");
}

/** Asks a question with yes and no; Enter means no. */
async function confirm(prompter: Prompter, question: string): Promise<boolean> {
  return /^y(es)?$/i.test(await prompter.ask(question));
}

function withoutPassword(value: string): string {
  return value.replace(/:\/\/[^\s/@]+@/, "://…@");
}
