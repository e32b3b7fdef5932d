import { platformModules } from "./platforms/registry.ts";

/** How a command is run in the place of a deployed bot, whose settings and store it needs. */
const besideDeployment = (words: string, isInCompose = true): string => `
Beside a deployment, with its settings and its store:
${isInCompose ? `  Compose:  docker compose -f deploy/compose.yaml exec parley node src/launch.js ${words}\n` : ""}  systemd:  systemd-run --pipe --wait -p DynamicUser=yes -p User=parley -p StateDirectory=parley \\
              -p WorkingDirectory=/opt/parley -p EnvironmentFile=/etc/parley.env \\
              --setenv=STORE_URL=sqlite:/var/lib/parley/parley.db \\
              /opt/parley/node_modules/.bin/node src/launch.js ${words}`;

interface CommandHelp {
  /** The words after `parley`. */
  readonly usage: string;
  /** One line. */
  readonly summary: string;
  readonly details?: string;
}

const own: Readonly<Record<string, CommandHelp>> = {
  start: {
    usage: "",
    summary: "the bot, with the local page when no platform is set (npm start)",
    details: `Reads .env in this folder; variables that are set already win over it. SIGTERM or Ctrl+C
finishes running answers first; a second Ctrl+C stops at once.`,
  },
  setup: {
    usage: "setup [--<setting> <value> …] [--force] [--no-check]",
    summary: "asks for the settings, checks each answer, and writes .env",
    details: `Without options it asks. With options it asks nothing, for scripts:
  --<setting> <value>  any setting in lower case, such as --discord-token or --gateway-base-url;
                       the value - is read from standard input, a line for each, so that
                       secrets stay out of the shell's history; an empty value removes one
  --force              writes also what the checks found wrong
  --no-check           does not ask any service

Keeps what is in .env, and the old file as .env.backup. Both are readable to you only.
Exit code: 0 written, 1 something is wrong and nothing was written, 2 wrong options.`,
  },
  doctor: {
    usage: "doctor [--live] [--json]",
    summary: "says what is right and wrong with settings and services, and what to do",
    details: `Only reads: nothing changes at Discord, Slack, the gateway, or in the store. May run beside the bot.
  --live  also makes a real call of the chat model (one token), and opens Slack's socket
  --json  prints {ok, counts, findings: [{section, subject, level, text, remedy}]}

Exit code: 0 nothing is wrong (warnings may remain), 1 something is, 2 it could not run.
${besideDeployment("doctor")}`,
  },
  gateway: {
    usage: "gateway",
    summary: "the embedded gateway alone",
    details:
      "Serves on GATEWAY_HOST and GATEWAY_PORT, with the upstreams of GATEWAY_CONFIG (docs/gateway.md).",
  },
  account: {
    usage: "account add <name> | list | password <name> | remove <name> | reopen <name>",
    summary: "manages the accounts of the page",
    details: `Also while the bot runs: it sees changes within seconds. A password is made and shown once.
  --password-stdin  reads the password from standard input instead (add, password)
  --keep-chats      closes the account; reopen gives everything back (remove)
  --erase-chats     closes it and erases its chats, files, settings and counts (remove)
Says first which store it opened. See docs/access.md.
${besideDeployment("account add anna")}`,
  },
  backup: {
    usage: "backup <folder>",
    summary: "copies the store into a new folder, also while the bot runs",
    details: `Says which store it opened, and prints the lines that restore it. Redis and Postgres, as under Compose,
have backups of their own.
${besideDeployment("backup /var/lib/parley/backup-1", false)}`,
  },
  copy: {
    usage: "copy <from> <to>",
    summary: "copies a store into an empty one, while the bot is stopped; also encrypts, or changes keys",
    details: `Both are written as in STORE_URL, such as sqlite:data/parley.db postgres://parley@host/parley.
The copy is encrypted with the first of STORE_ENCRYPTION_KEYS; each of them opens the old store,
which stays as it is. A second run goes on with a copy that was interrupted.`,
  },
  settings: {
    usage: "settings [--env]",
    summary: "prints every setting in Markdown, a table for each topic",
    details: "  --env  prints a .env of all defaults instead, each with a comment",
  },
  "warm-up": {
    usage: "warm-up",
    summary: "fills the compile cache, so that the first start is fast (run by npm install)",
  },
  "--check-config": {
    usage: "--check-config",
    summary: "checks the settings and commands, and starts nothing",
    details: "Asks no service: parley doctor does. Exit code: 0 right, 1 wrong.",
  },
};

function commands(): Readonly<Record<string, CommandHelp>> {
  const tools = platformModules.flatMap(({ tools: of }) =>
    Object.entries(of).map(
      ([name, { description }]) => [name, { usage: name, summary: description }] as const,
    ),
  );
  return { ...own, ...Object.fromEntries(tools) };
}

/** The text of `parley --help`. */
export function toUsage(): string {
  const rows = Object.entries(commands()).filter(([name]) => !name.includes(" "));
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.map(
    ([name, { summary }]) => `  ${(name === "start" ? "" : name).padEnd(width)}  ${summary}\n`,
  );
  return `Usage: parley [command] [options]   (or: npm run <command> -- [options])
${lines.join("")}
parley <command> --help says more. New here? parley setup, then npm start.
`;
}

/** The text of `parley <command> --help`, or `undefined` if the command does not exist. */
export function helpOf(name: string): string | undefined {
  const all = commands();
  if (!Object.hasOwn(all, name)) return undefined;
  const { usage, summary, details } = all[name] as CommandHelp;
  const sentence = summary.charAt(0).toUpperCase() + summary.slice(1);
  return `Usage: ${`parley ${usage}`.trim()}\n${sentence}.\n${details === undefined ? "" : `\n${details}\n`}`;
}

/** The help that a command line asks for, if any. */
export function findHelp(words: readonly string[]): string | undefined {
  const isFlag = (word: string): boolean => word === "--help" || word === "-h";
  if (words[0] !== "help" && !words.some(isFlag)) return undefined;
  const [first = "", second = ""] = words.filter((word, at) => !isFlag(word) && (at > 0 || word !== "help"));
  return helpOf(`${first} ${second}`) ?? helpOf(first) ?? toUsage();
}
