import { randomBytes } from "node:crypto";
import { parseArgs } from "node:util";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { Account, Accounts } from "./accounts.ts";

const accountUsage = `Accounts of the page:
  account add <name> [--password-stdin]
  account list
  account password <name> [--password-stdin]
  account remove <name> --keep-chats | --erase-chats
  account reopen <name>`;

/** The random bytes of a generated password, which make 16 characters. */
const madeBytes = 12;

/**
 * Runs one of the commands above (the words after `account`) and returns the output. A generated password is
 * shown this once.
 * @param readPassword reads one from standard input, for `--password-stdin`
 * @throws ParleyError `invalid-option` with a sentence, and the usage where the words are wrong
 */
export async function runAccountCommand(
  words: readonly string[],
  accounts: Accounts,
  readPassword: () => Promise<string>,
): Promise<string> {
  const { command, name, options } = parse(words);
  const makePassword = async () =>
    options["password-stdin"] ? await readPassword() : randomBytes(madeBytes).toString("base64url");
  const shown = (password: string) =>
    options["password-stdin"]
      ? ""
      : `\n\nThe password, shown this once:\n${password}\n\nIt can be changed in the page's settings.`;
  switch (command) {
    case "list": {
      const all = await accounts.list();
      return all.length === 0 ? "There are no accounts." : all.map((account) => describe(account)).join("\n");
    }
    case "add": {
      const password = await makePassword();
      const account = await accounts.add(expectName(name), password);
      const rules = `Not an admin, unless ADMINS lists web:user:${account.name}.`;
      return `${describe(account)}\n${rules}${shown(password)}`;
    }
    case "password": {
      const password = await makePassword();
      const account = await accounts.setPassword(expectName(name), password);
      return `${describe(account)}\nIts sessions end within seconds.${shown(password)}`;
    }
    case "remove":
      return await remove(expectName(name), options, accounts);
    case "reopen":
      await accounts.setState(expectName(name), "open");
      return describe(await accounts.named(expectName(name)));
    default:
      throw usageError(
        command === undefined ? "The command is missing." : `There is no command '${command}'.`,
      );
  }
}

async function remove(name: string, options: Options, accounts: Accounts): Promise<string> {
  const { "keep-chats": isKept, "erase-chats": isErased } = options;
  if (isKept === isErased)
    throw usageError("Say what becomes of the chats: --keep-chats or --erase-chats, which cannot be undone.");
  await accounts.setState(name, isKept ? "closed" : "erasing");
  const outcome = isKept
    ? `The account ${name} is closed: nobody can log in to it. Its chats are kept; account reopen ${name} gives them back.`
    : `The account ${name} is closed: nobody can log in to it. Parley erases its chats, files, settings and counts within seconds where it runs, else when it starts.`;
  const isLast = !(await accounts.hasAny());
  return isLast
    ? `${outcome}\nThere is no other account: whoever reaches the page opens its shared account now, unless PAGE_LOGIN=accounts or PAGE_PASSWORD is set.`
    : outcome;
}

interface Options {
  readonly "password-stdin": boolean;
  readonly "keep-chats": boolean;
  readonly "erase-chats": boolean;
}

function parse(words: readonly string[]): {
  readonly command: string | undefined;
  readonly name: string | undefined;
  readonly options: Options;
} {
  try {
    const { values, positionals } = parseArgs({
      args: [...words],
      allowPositionals: true,
      options: {
        "password-stdin": { type: "boolean", default: false },
        "keep-chats": { type: "boolean", default: false },
        "erase-chats": { type: "boolean", default: false },
      },
    });
    const [command, name, ...rest] = positionals;
    if (rest.length > 0) throw usageError(`What is ${JSON.stringify(rest.join(" "))}? A name is one word.`);
    return { command, name: name?.toLowerCase(), options: values };
  } catch (error) {
    throw isParleyError(error) ? error : usageError(error instanceof Error ? error.message : "");
  }
}

function expectName(name: string | undefined): string {
  if (name === undefined) throw usageError("The name of the account is missing.");
  return name;
}

function describe({ name, state, createdAt }: Account): string {
  const since = new Date(createdAt).toISOString().slice(0, 10);
  return `${name}  ${state}  since ${since}`;
}

function usageError(problem: string): ParleyError {
  return new ParleyError("invalid-option", `${problem}\n\n${accountUsage}`);
}
