import { beforeEach, describe, expect, it } from "vitest";
import { runAccountCommand } from "../../../../../src/platforms/web/accounts/account-commands.ts";
import { createAccounts, type Accounts } from "../../../../../src/platforms/web/accounts/accounts.ts";
import { createSharedMemory } from "../../../../support/memory-records.ts";

let accounts: Accounts;
beforeEach(() => {
  accounts = createAccounts(createSharedMemory().records);
});

const run = (words: string, typed = "correct horse") =>
  runAccountCommand(words.split(" "), accounts, () => Promise.resolve(typed));

const passwordIn = (output: string) => /shown this once:\n([\w-]{16})\n/.exec(output)?.[1] ?? "";

describe("npm run account", () => {
  it("adds an account whose password is shown once, and lists it without", async () => {
    expect(await run("list")).toBe("There are no accounts.");
    const output = await run("add Anna");
    expect(await accounts.check("anna", passwordIn(output))).toMatchObject({ name: "anna" });
    expect(output).toContain("\nNot an admin, unless ADMINS lists web:user:anna.\n");
    const listed = await run("list");
    expect(listed).toMatch(/^anna {2}open {2}since \d{4}-\d\d-\d\d$/);
    expect(listed).not.toContain(passwordIn(output));
  });

  it("takes a password from standard input, and does not show it", async () => {
    expect(await run("add anna --password-stdin")).not.toContain("correct horse");
    expect(await accounts.check("anna", "correct horse")).toBeDefined();
    await expect(run("add ben --password-stdin", "short")).rejects.toThrow("8 to 200 characters");
  });

  it("sets another password", async () => {
    await run("add anna --password-stdin");
    const made = passwordIn(await run("password anna"));
    expect(await accounts.check("anna", "correct horse")).toBeUndefined();
    expect(await accounts.check("anna", made)).toBeDefined();
  });

  it("removes only where it is said what becomes of the chats", async () => {
    await run("add anna");
    await run("add ben");
    await expect(run("remove anna")).rejects.toThrow("--keep-chats or --erase-chats");
    await expect(run("remove anna --keep-chats --erase-chats")).rejects.toThrow(
      "--keep-chats or --erase-chats",
    );
    expect(await run("remove anna --keep-chats")).toContain("Its chats are kept");
    expect(await run("reopen anna")).toContain("open");
    expect(await run("remove anna --erase-chats")).not.toContain("no other account");
    expect(await run("remove ben --erase-chats")).toContain("There is no other account");
    await expect(run("reopen ben")).rejects.toThrow("is being erased");
  });

  it("says how it is used where words are wrong", async () => {
    for (const words of ["", "rename anna", "add", "add anna smith", "add anna --force"])
      await expect(run(words)).rejects.toThrow(/account add <name>/);
    await expect(run("password nobody")).rejects.toThrow('There is no account "nobody".');
  });
});
