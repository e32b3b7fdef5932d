import { createHash } from "node:crypto";
import {
  type BackendChange,
  type IndexChange,
  type IndexMember,
  type IndexPage,
  type PassedLimit,
  type ScoreLimit,
  type WriteCondition,
} from "../backend.ts";
import type { EntryAddress } from "../keys.ts";

/** Applies changes with the keys after KEYS[keyAt] and arguments from ARGV[arg]. */
const applyChanges = `
for i = keyAt + 1, #KEYS do
  local key = KEYS[i]
  local kind = ARGV[arg]
  if kind == 'set' then
    if ARGV[arg + 2] == '' then redis.call('SET', key, ARGV[arg + 1])
    elseif ARGV[arg + 2] == 'kept' then redis.call('SET', key, ARGV[arg + 1], 'XX', 'KEEPTTL')
    elseif ARGV[arg + 2] == '0' then redis.call('UNLINK', key)
    else redis.call('SET', key, ARGV[arg + 1], 'PX', ARGV[arg + 2]) end
  elseif kind == 'delete' then redis.call('UNLINK', key)
  elseif kind == 'keep' then
    if ARGV[arg + 2] == '' then redis.call('PERSIST', key)
    else redis.call('PEXPIRE', key, ARGV[arg + 2]) end
  elseif kind == 'add-member' then
    local old = redis.call('ZSCORE', key, ARGV[arg + 1])
    if not old or tonumber(old) < tonumber(ARGV[arg + 2]) then
      redis.call('ZADD', key, ARGV[arg + 2], ARGV[arg + 1])
      end
  elseif kind == 'append-member' then
    local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    local score = tonumber(ARGV[arg + 2])
    if last[2] and tonumber(last[2]) >= score then score = tonumber(last[2]) + 1 end
    redis.call('ZADD', key, string.format('%.0f', score), ARGV[arg + 1])
  elseif kind == 'add-score' then
    redis.call('ZINCRBY', key, ARGV[arg + 2], ARGV[arg + 1])
  elseif kind == 'remove-member' then redis.call('ZREM', key, ARGV[arg + 1])
  elseif kind == 'trim-index' then
    redis.call('ZREMRANGEBYSCORE', key, '-inf', ARGV[arg + 1])
  end
  arg = arg + 3
end
`;

/**
 * ARGV[1] has a letter for each of the first keys: "a" if it must be absent, "p" if present, "s" if its
 * value must be the next argument. The script writes everything, or nothing if one condition is not met. It
 * returns that key's position, or else -1. Redis runs a script alone and persists it as one transaction.
 * Times to live are relative, because SET takes no absolute ones before Redis 6.2. A time of 0 ends an
 * entry that has already expired.
 */
const applySource = `
local keyAt = string.len(ARGV[1])
local arg = 2
for i = 1, keyAt do
  local expected = string.sub(ARGV[1], i, i)
  if expected == 's' then
    if redis.call('GET', KEYS[i]) ~= ARGV[arg] then return i - 1 end
    arg = arg + 1
  elseif redis.call('EXISTS', KEYS[i]) ~= (expected == 'p' and 1 or 0) then return i - 1 end
end
${applyChanges}
return -1
`;

/** Writes everything, or nothing if one of the first ARGV[1] limits is exceeded, and returns its scores. */
const countSource = `
local keyAt = 0
local arg = 2
for limit = 1, tonumber(ARGV[1]) do
  local terms = tonumber(ARGV[arg])
  local max = tonumber(ARGV[arg + 1])
  arg = arg + 2
  local sum = 0
  local passed = { limit - 1 }
  for term = 1, terms do
    keyAt = keyAt + 1
    local score = redis.call('ZSCORE', KEYS[keyAt], ARGV[arg]) or '0'
    sum = sum + tonumber(score) * tonumber(ARGV[arg + 1])
    passed[term + 1] = score
    arg = arg + 2
  end
  if sum > max then return passed end
end
${applyChanges}
return {}
`;

/**
 * Reads at most ARGV[4] members of KEYS[1] behind the member ARGV[3] with the score ARGV[2], downwards if
 * ARGV[1] is "down". It looks for that place itself, because the member may be gone, and compares bytes like
 * Redis, because Lua compares as the server's language does.
 */
const pageSource = `
local key, isDown, score, member = KEYS[1], ARGV[1] == 'down', ARGV[2], ARGV[3]
local function isBefore(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end
local low = redis.call('ZCOUNT', key, '-inf', '(' .. score)
local high = low + redis.call('ZCOUNT', key, score, score)
while low < high do
  local middle = math.floor((low + high) / 2)
  local found = redis.call('ZRANGE', key, middle, middle)[1]
  local isHigher
  if isDown then isHigher = not isBefore(found, member) else isHigher = isBefore(member, found) end
  if isHigher then high = middle else low = middle + 1 end
end
if not isDown then return redis.call('ZRANGE', key, low, low + ARGV[4] - 1, 'WITHSCORES') end
local from = redis.call('ZCARD', key) - low
return redis.call('ZREVRANGE', key, from, from + ARGV[4] - 1, 'WITHSCORES')
`;

/** Deletes KEYS[1] if its value is ARGV[1]. */
export const deleteIfSource = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** A Lua script with the name under which Redis caches it. */
export interface RedisScript {
  readonly source: string;
  readonly sha1: string;
}

const toScript = (source: string): RedisScript => ({
  source,
  sha1: createHash("sha1").update(source).digest("hex"),
});

/** The Lua script for `Backend.apply`. */
export const applyScript = toScript(applySource);

/** The Lua script for `Backend.count`. */
export const countScript = toScript(countSource);

/** The Lua script for a page of `Backend.range` that goes on after a member. */
export const pageScript = toScript(pageSource);

/** The keys and arguments of a script. */
interface ScriptInput {
  readonly keys: string[];
  readonly arguments: string[];
}

/** Makes the input of `applyScript`. Every change is one key and three arguments. */
export function toApplyInput(
  conditions: readonly WriteCondition[],
  changes: readonly BackendChange[],
  now: number,
): ScriptInput {
  const expected = conditions.map(toLetter).join("");
  const values = conditions.flatMap(({ mustBe }) => mustBe ?? []);
  const input = { keys: conditions.map((at) => nameOfEntry(at)), arguments: [expected, ...values] };
  addChanges(input, changes, now);
  return input;
}

function toLetter({ mustExist, mustBe }: WriteCondition): "a" | "p" | "s" {
  if (mustBe !== undefined) return "s";
  return mustExist === true ? "p" : "a";
}

/** Makes the input of `countScript`. */
export function toCountInput(limits: readonly ScoreLimit[], changes: readonly IndexChange[]): ScriptInput {
  const input = {
    keys: limits.flatMap(({ terms }) => terms.map(({ index }) => nameOfIndex(index))),
    arguments: [],
  };
  const args: string[] = input.arguments;
  args.push(String(limits.length));
  for (const { terms, max } of limits) {
    args.push(String(terms.length), String(max));
    for (const { member, weight = 1 } of terms) args.push(member, String(weight));
  }
  addChanges(input, changes, 0);
  return input;
}

/** Makes the input of `pageScript`. */
export function toPageInput(key: string, { order, max }: IndexPage, after: IndexMember): ScriptInput {
  const direction = order === "highest-first" ? "down" : "up";
  return { keys: [key], arguments: [direction, String(after.score), after.member, String(max)] };
}

/** Reads the result of `pageScript`, in which each member is followed by its score. */
export function toPage(result: unknown): IndexMember[] {
  const values = (Array.isArray(result) ? result : []).map(String);
  return values.flatMap((member, at) => (at % 2 === 0 ? [{ member, score: Number(values[at + 1]) }] : []));
}

/** Reads the result of `countScript`. */
export function toPassedLimit(result: unknown): PassedLimit | undefined {
  const [position, ...scores] = Array.isArray(result) ? (result as unknown[]) : [];
  return position === undefined ? undefined : { position: Number(position), scores: scores.map(Number) };
}

function addChanges(
  { keys, arguments: args }: ScriptInput,
  changes: readonly BackendChange[],
  now: number,
): void {
  const ttl = (expires: number | undefined) =>
    expires === undefined ? "" : String(Math.max(0, expires - now));
  for (const change of changes) {
    switch (change.kind) {
      case "set":
        keys.push(nameOfEntry(change.at));
        args.push("set", change.value, change.expires === "kept" ? "kept" : ttl(change.expires));
        break;
      case "delete":
        keys.push(nameOfEntry(change.at));
        args.push("delete", "", "");
        break;
      case "keep":
        keys.push(nameOfEntry(change.at));
        args.push("keep", "", ttl(change.expires));
        break;
      case "add-member":
      case "append-member":
        keys.push(nameOfIndex(change.index));
        args.push(change.kind, change.member, String(change.score));
        break;
      case "add-score":
        keys.push(nameOfIndex(change.index));
        args.push("add-score", change.member, String(change.score));
        break;
      case "remove-member":
        keys.push(nameOfIndex(change.index));
        args.push("remove-member", change.member, "");
        break;
      case "trim-index":
        keys.push(nameOfIndex(change.index));
        args.push("trim-index", String(change.maxScore), "");
    }
  }
}

/** The name of an entry in Redis. */
export function nameOfEntry({ space, key }: EntryAddress): string {
  return `parley:${space}::${key}`;
}

/**
 * The name of an index in Redis. The first version called indexes rankings, and existing stores have these
 * keys.
 */
export function nameOfIndex(name: string): string {
  return `parley:ranking::${name}`;
}

/** A field of `INFO`, if it has it. */
export function fieldOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
}

/** The product's name by its `INFO`. Valkey also claims to be Redis, for programs that know only that. */
export function productOf(info: string): "Redis" | "Valkey" {
  return fieldOf(info, "server_name") === "valkey" ? "Valkey" : "Redis";
}
