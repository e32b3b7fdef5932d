import { argon2, randomBytes, timingSafeEqual, type Argon2Parameters } from "node:crypto";
import { promisify } from "node:util";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { Records } from "../../../core/storage.ts";
import { systemClock } from "../../../support/clock.ts";
import { createFairSemaphore } from "../../../support/queues.ts";

/** The length of a password, in characters. */
export const passwordLimits = { minChars: 8, maxChars: 200 } as const;

/**
 * An `open` account may log in. A `closed` one may not, and its chats are kept. An account that is `erasing`
 * may not either: the running bot erases its chats, and then the account itself.
 */
const stateSchema = z.enum(["open", "closed", "erasing"]);
const indexSchema = z.record(z.string(), z.object({ id: z.string(), state: stateSchema }));
const recordSchema = z.object({
  id: z.string(),
  passwordHash: z.string(),
  createdAt: z.number(),
  /** When the password was set. Sessions with earlier passwords end. */
  changedAt: z.number(),
});

type Index = z.infer<typeof indexSchema>;

/** Somebody who may log in to the page by name and password. */
export interface Account {
  /** 12 hexadecimal digits, which are never given to another account. */
  readonly id: string;
  readonly name: string;
  readonly state: z.infer<typeof stateSchema>;
  /** Unix milliseconds. */
  readonly createdAt: number;
  /** When the password was set, in Unix milliseconds. */
  readonly changedAt: number;
}

const indexKey = "web/accounts";
const recordKey = (id: string): string => `web/account/${id}`;
const cacheMs = 2000;
const maxCached = 1000;

/** The accounts of the page. Processes see changes within two seconds. Failures throw `store-unavailable`. */
export function createAccounts(records: Records, clock: Clock = systemClock) {
  const cache = new LRUCache<string, { readonly value: unknown }>({
    max: maxCached,
    ttl: cacheMs,
    ttlResolution: 0,
    perf: { now: () => clock.now() },
  });

  async function read(key: string, { isFresh = false } = {}): Promise<unknown> {
    const known = isFresh ? undefined : cache.get(key);
    if (known !== undefined) return known.value;
    const value = await records.get(key);
    cache.set(key, { value });
    return value;
  }

  async function readIndex(options?: { readonly isFresh: boolean }): Promise<Index> {
    return parseIndex(await read(indexKey, options));
  }

  /** @throws ParleyError `store-corrupt` for a damaged one, which must not count as no account */
  async function readRecord(name: string, id: string, options?: { readonly isFresh: boolean }) {
    const stored = await read(recordKey(id), options);
    if (stored === undefined) return undefined;
    const parsed = recordSchema.safeParse(stored);
    if (!parsed.success) throw unreadable(name);
    return parsed.data;
  }

  async function update(key: string, change: Parameters<Records["update"]>[1]): Promise<void> {
    await records.update(key, change);
    cache.delete(key);
  }

  /** Changes the list, over whatever another process makes of it. @throws what `change` throws */
  async function updateIndex(change: (index: Index) => Index): Promise<void> {
    await update(indexKey, (stored) => change(parseIndex(stored)));
  }

  async function toAccount(
    name: string,
    { id, state }: Index[string],
    options?: { readonly isFresh: boolean },
  ): Promise<Account> {
    const record = await readRecord(name, id, options);
    if (record === undefined) throw unreadable(name);
    const { createdAt, changedAt } = record;
    return { id, name, state, createdAt, changedAt };
  }

  async function list(): Promise<Account[]> {
    const index = Object.entries(await readIndex());
    // One that is being erased may have no record any more.
    const listed = index.filter(([, { state }]) => state !== "erasing");
    const accounts = await Promise.all(listed.map(([name, entry]) => toAccount(name, entry)));
    return accounts.toSorted((a, b) => a.name.localeCompare(b.name, "en"));
  }

  async function find(id: string): Promise<Account | undefined> {
    const [name, entry] = Object.entries(await readIndex()).find(([, one]) => one.id === id) ?? [];
    if (name === undefined || entry?.state !== "open") return undefined;
    return await toAccount(name, entry);
  }

  return {
    /** Lists the accounts that are not being erased, by name. */
    list,
    /** Lists the accounts that are being erased. */
    erasing: async () =>
      Object.entries(await readIndex({ isFresh: true })).flatMap(([name, { id, state }]) =>
        state === "erasing" ? [{ id, name }] : [],
      ),
    /** Returns an account that may log in, or `undefined` where there is none. */
    find,
    /** Whether there are any, closed ones included. Then nobody opens the page without a login. */
    hasAny: async () => Object.values(await readIndex()).some(({ state }) => state !== "erasing"),
    /** Whether somebody may log in by this name. */
    has: async (name: string) => {
      const index = await readIndex();
      return Object.hasOwn(index, name) && index[name]?.state === "open";
    },
    /** Returns the name of an account, whatever its state. */
    nameOf: async (id: string) => Object.entries(await readIndex()).find(([, one]) => one.id === id)?.[0],

    /** Returns `undefined` where the name or password is wrong. @throws ParleyError `busy` on many logins */
    async check(name: string, password: string): Promise<Account | undefined> {
      // An account that was just added can be used at once.
      const index = await readIndex({ isFresh: true });
      const entry = Object.hasOwn(index, name) ? index[name] : undefined;
      const record =
        entry?.state === "open" ? await readRecord(name, entry.id, { isFresh: true }) : undefined;
      const isRight = await isPasswordOf(
        record?.passwordHash,
        password.slice(0, passwordLimits.maxChars + 1),
      );
      return isRight && record !== undefined ? await find(record.id) : undefined;
    },

    /** Adds an account. @throws ParleyError `invalid-option` with a sentence on a bad or taken name */
    async add(name: string, password: string): Promise<Account> {
      if (!accountName.test(name))
        throw wrong(
          `${JSON.stringify(name)} cannot be a name: 1 to 32 of a to z, 0 to 9, dots, dashes and underscores, the first a letter or digit.`,
        );
      expectPassword(password);
      expectFree(await readIndex({ isFresh: true }), name);
      const passwordHash = await hashPassword(password);
      const id = randomBytes(6).toString("hex");
      const now = clock.now();
      // This is written first, since an entry without its record belongs to nobody.
      await records.set(recordKey(id), { id, passwordHash, createdAt: now, changedAt: now });
      try {
        await updateIndex((index) => {
          expectFree(index, name);
          return { ...index, [name]: { id, state: "open" } };
        });
      } catch (error) {
        if (isParleyError(error, "invalid-option")) await records.delete(recordKey(id));
        throw error;
      }
      return await toAccount(name, { id, state: "open" });
    },

    /** Sets a password, which ends all sessions. @throws ParleyError `invalid-option`, like `add` */
    async setPassword(name: string, password: string): Promise<Account> {
      expectPassword(password);
      const { id } = expectKnown(await readIndex({ isFresh: true }), name);
      const passwordHash = await hashPassword(password);
      const changedAt = clock.now();
      await update(recordKey(id), (stored) => {
        const createdAt = recordSchema.safeParse(stored).data?.createdAt ?? changedAt;
        return { id, passwordHash, createdAt, changedAt };
      });
      const entry = Object.entries(await readIndex({ isFresh: true })).find(([, one]) => one.id === id)?.[1];
      if (entry === undefined || entry.state === "erasing") {
        // It was removed meanwhile, perhaps with the record that is here again.
        await records.delete(recordKey(id));
        throw noAccount(name);
      }
      return await toAccount(name, entry);
    },

    /** Changes the state. @throws ParleyError `invalid-option` where there is none or it is being erased */
    async setState(name: string, state: Account["state"]): Promise<void> {
      await updateIndex((index) => ({ ...index, [name]: { id: expectKnown(index, name).id, state } }));
    },

    /** Returns an account, open or closed. @throws ParleyError `invalid-option`, like `setState` */
    async named(name: string): Promise<Account> {
      return await toAccount(name, expectKnown(await readIndex({ isFresh: true }), name), { isFresh: true });
    },

    /** Removes what is stored about an account that is being erased, once its chats are erased. */
    async forget(id: string): Promise<void> {
      await records.delete(recordKey(id));
      cache.delete(recordKey(id));
      // The name comes last, since it leads to the rest.
      await updateIndex((index) =>
        Object.fromEntries(Object.entries(index).filter(([, one]) => one.id !== id)),
      );
    },
  };
}

function parseIndex(stored: unknown): Index {
  const parsed = indexSchema.safeParse(stored ?? {});
  // If it were taken for no accounts, the page would be open.
  if (!parsed.success)
    throw new ParleyError("store-corrupt", "the list of the page's accounts is not readable");
  return parsed.data;
}

/** @throws ParleyError `invalid-option` where an account has the name, in whatever state */
function expectFree(index: Index, name: string): void {
  switch (Object.hasOwn(index, name) ? index[name]?.state : undefined) {
    case undefined:
      return;
    case "open":
      throw wrong(`There is an account ${name} already.`);
    case "closed":
      throw wrong(
        `There is a closed account ${name}, whose chats are kept: reopen it, or remove it with --erase-chats.`,
      );
    case "erasing":
      throw wrong(`An account ${name} is being erased: this ends while the bot runs. Then the name is free.`);
  }
}

/** @throws ParleyError `invalid-option` where there is none, or it is being erased */
function expectKnown(index: Index, name: string): Index[string] {
  const entry = Object.hasOwn(index, name) ? index[name] : undefined;
  if (entry === undefined) throw noAccount(name);
  if (entry.state === "erasing")
    throw wrong(`The account ${name} is being erased: this ends while the bot runs.`);
  return entry;
}

export type Accounts = ReturnType<typeof createAccounts>;

/** @throws ParleyError `invalid-option` for a password that is too short or too long */
function expectPassword(password: string): void {
  const { minChars, maxChars } = passwordLimits;
  if (password.length < minChars || password.length > maxChars)
    throw wrong(`A password has ${minChars} to ${maxChars} characters.`);
}

function wrong(problem: string): ParleyError {
  return new ParleyError("invalid-option", problem, { detail: { problem } });
}

function noAccount(name: string): ParleyError {
  return wrong(`There is no account ${JSON.stringify(name)}.`);
}

function unreadable(name: string): ParleyError {
  return new ParleyError(
    "store-corrupt",
    `the account ${name} is not readable in the store: set its password again, or remove it`,
  );
}

/** The form of account names. They have only small letters, so it does not matter how a name is typed. */
export const accountName = /^[a-z0-9][a-z0-9._-]{0,31}$/;

const derive = promisify(argon2);

/** The cost. @see https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html */
const cost = { memory: 19_456, passes: 2, parallelism: 1 } as const;
const saltBytes = 16;
const tagBytes = 32;
const version = 0x13;
/** The number of concurrent hashes, each of which needs a thread and its memory. */
const maxAtOnce = 2;
/** With this many waiting hashes, further logins are refused. */
const maxWaiting = 50;

const running = createFairSemaphore({ max: maxAtOnce, maxPerKey: 1 });

/**
 * Hashes a password with argon2id. Resolves to a PHC string: `$argon2id$v=19$m=…,t=…,p=…$<salt>$<hash>`.
 * @throws ParleyError `busy` when too many wait
 */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes);
  const tag = await run(password, { ...cost, nonce: salt, tagLength: tagBytes });
  const { memory, passes, parallelism } = cost;
  return `$argon2id$v=${version}$m=${memory},t=${passes},p=${parallelism}$${encode(salt)}$${encode(tag)}`;
}

/**
 * Whether a password is the one of a PHC string. It takes the time of a hash even where it is not.
 * `undefined` stands for an account that does not exist, which takes as long.
 * @throws ParleyError `busy` when too many wait, `store-corrupt` for a string that {@link hashPassword} did
 *   not make
 */
export async function isPasswordOf(hash: string | undefined, password: string): Promise<boolean> {
  if (hash === undefined) {
    await hashPassword(password);
    return false;
  }
  const [, memory, passes, parallelism, salt = "", tag = ""] =
    /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([\w+/]{11,86})\$([\w+/]{22,86})$/.exec(hash) ??
    [];
  if (memory === undefined) throw new ParleyError("store-corrupt", "the hash of a password is not readable");
  const expected = Buffer.from(tag, "base64");
  const given = await run(password, {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    nonce: Buffer.from(salt, "base64"),
    tagLength: expected.length,
  });
  return timingSafeEqual(given, expected);
}

async function run(password: string, parameters: Omit<Argon2Parameters, "message">): Promise<Buffer> {
  if (running.waiting() >= maxWaiting) throw new ParleyError("busy", "too many logins at once");
  // Every login has a key of its own, so that they take turns.
  const release = await running.acquire(randomBytes(8).toString("hex"), 1);
  try {
    return await derive("argon2id", { ...parameters, message: Buffer.from(password.normalize("NFC")) });
  } finally {
    release();
  }
}

function encode(bytes: Buffer): string {
  return bytes.toString("base64").replaceAll("=", "");
}
