import { argon2, randomBytes, timingSafeEqual, type Argon2Parameters } from "node:crypto";
import { promisify } from "node:util";
import { ParleyError } from "../../../core/errors.ts";
import { createFairSemaphore } from "../../../support/fair-semaphore.ts";

const derive = promisify(argon2);

/** Of one hash: 19 MiB, two passes, one lane. @see https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html */
const cost = { memory: 19_456, passes: 2, parallelism: 1 } as const;
const saltBytes = 16;
const tagBytes = 32;
const version = 0x13;
/** Hashes at once: each needs a thread and its memory. */
const maxAtOnce = 2;
/** Waiting hashes, from which on further logins are refused. */
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
 * Whether a password is the one of a PHC string; in the time of a hash, also where it is not. `undefined`: there is no
 * such account, which takes as long.
 * @throws ParleyError `busy` when too many wait, `store-corrupt` for a string that {@link hashPassword} has not made
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
  // Every login is a key of its own: they take turns.
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
