import { createHash } from "node:crypto";
import {
  countedPrefix,
  type EntryAddress,
  type Space,
  type BackendChange,
  type IndexChange,
  type PassedLimit,
  type ScoreLimit,
  type WriteCondition,
} from "../backend.ts";
import { indexes } from "../key-value.ts";

/** Applies changes with the keys after KEYS[keyAt] and arguments from ARGV[arg], and sets `changed`. */
const applyChanges = `
local changed = false
for i = keyAt + 1, #KEYS do
  local key = KEYS[i]
  local kind = ARGV[arg]
  if kind == 'set' then
    if ARGV[arg + 2] == '' then redis.call('SET', key, ARGV[arg + 1])
    elseif ARGV[arg + 2] == 'kept' then redis.call('SET', key, ARGV[arg + 1], 'XX', 'KEEPTTL')
    elseif ARGV[arg + 2] == '0' then redis.call('UNLINK', key)
    else redis.call('SET', key, ARGV[arg + 1], 'PX', ARGV[arg + 2]) end
    changed = true
  elseif kind == 'delete' then changed = redis.call('UNLINK', key) > 0 or changed
  elseif kind == 'keep' then
    if ARGV[arg + 2] == '' then changed = redis.call('PERSIST', key) > 0 or changed
    else changed = redis.call('PEXPIRE', key, ARGV[arg + 2]) > 0 or changed end
  elseif kind == 'add-member' then
    local old = redis.call('ZSCORE', key, ARGV[arg + 1])
    if not old or tonumber(old) < tonumber(ARGV[arg + 2]) then
      redis.call('ZADD', key, ARGV[arg + 2], ARGV[arg + 1])
      changed = true
    end
  elseif kind == 'append-member' then
    local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    local score = tonumber(ARGV[arg + 2])
    if last[2] and tonumber(last[2]) >= score then score = tonumber(last[2]) + 1 end
    redis.call('ZADD', key, string.format('%.0f', score), ARGV[arg + 1])
    changed = true
  elseif kind == 'add-score' then
    redis.call('ZINCRBY', key, ARGV[arg + 2], ARGV[arg + 1])
    changed = true
  elseif kind == 'remove-member' then changed = redis.call('ZREM', key, ARGV[arg + 1]) > 0 or changed
  elseif kind == 'trim-index' then
    changed = redis.call('ZREMRANGEBYSCORE', key, '-inf', ARGV[arg + 1]) > 0 or changed
  end
  arg = arg + 3
end
`;

/**
 * ARGV[1] has a letter for each of the first keys: "a" if it must be absent, "p" if present, "s" if its value
 * must be the next argument. The script writes everything, or nothing if one condition is not met. It returns
 * that key's position, or else -1, or -2 if everything was already as written. Redis runs a script alone and
 * persists it as one transaction. Times to live are relative, because SET takes no absolute ones before Redis
 * 6.2. A time of 0 ends an entry that has already expired.
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
return changed and -1 or -2
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

/** The keys and arguments of a script. */
interface ScriptInput {
  readonly keys: string[];
  readonly arguments: string[];
}

/** Makes the input of `applyScript`. Every change is one key and three arguments. */
export function toApplyInput(
  names: Pick<KeyNames, "entry" | "index">,
  conditions: readonly WriteCondition[],
  changes: readonly BackendChange[],
  now: number,
): ScriptInput {
  const expected = conditions.map(toLetter).join("");
  const values = conditions.flatMap(({ mustBe }) => mustBe ?? []);
  const input = { keys: conditions.map((at) => names.entry(at)), arguments: [expected, ...values] };
  addChanges(input, names, changes, now);
  return input;
}

function toLetter({ mustExist, mustBe }: WriteCondition): "a" | "p" | "s" {
  if (mustBe !== undefined) return "s";
  return mustExist === true ? "p" : "a";
}

/** Makes the input of `countScript`. */
export function toCountInput(
  names: Pick<KeyNames, "entry" | "index">,
  limits: readonly ScoreLimit[],
  changes: readonly IndexChange[],
): ScriptInput {
  const input = {
    keys: limits.flatMap(({ terms }) => terms.map(({ index }) => names.index(index))),
    arguments: [],
  };
  const args: string[] = input.arguments;
  args.push(String(limits.length));
  for (const { terms, max } of limits) {
    args.push(String(terms.length), String(max));
    for (const { member, weight = 1 } of terms) args.push(member, String(weight));
  }
  addChanges(input, names, changes, 0);
  return input;
}

/** Reads the result of `countScript`. */
export function toPassedLimit(result: unknown): PassedLimit | undefined {
  const [position, ...scores] = Array.isArray(result) ? (result as unknown[]) : [];
  return position === undefined ? undefined : { position: Number(position), scores: scores.map(Number) };
}

function addChanges(
  { keys, arguments: args }: ScriptInput,
  names: Pick<KeyNames, "entry" | "index">,
  changes: readonly BackendChange[],
  now: number,
): void {
  const ttl = (expires: number | undefined) =>
    expires === undefined ? "" : String(Math.max(0, expires - now));
  for (const change of changes) {
    switch (change.kind) {
      case "set":
        keys.push(names.entry(change.at));
        args.push("set", change.value, change.expires === "kept" ? "kept" : ttl(change.expires));
        break;
      case "delete":
        keys.push(names.entry(change.at));
        args.push("delete", "", "");
        break;
      case "keep":
        keys.push(names.entry(change.at));
        args.push("keep", "", ttl(change.expires));
        break;
      case "add-member":
      case "append-member":
        keys.push(names.index(change.index));
        args.push(change.kind, change.member, String(change.score));
        break;
      case "add-score":
        keys.push(names.index(change.index));
        args.push("add-score", change.member, String(change.score));
        break;
      case "remove-member":
        keys.push(names.index(change.index));
        args.push("remove-member", change.member, "");
        break;
      case "trim-index":
        keys.push(names.index(change.index));
        args.push("trim-index", String(change.maxScore), "");
    }
  }
}

/** Makes the names of keys in Redis. */
export interface KeyNames {
  entry(at: EntryAddress): string;
  index(name: string): string;
}

/** The beginning of the keys of a space. */
export const namespaceOf = (space: Space): string => `parley:${space}`;

/** The names on a single server. */
export const serverNames: KeyNames = {
  entry: (at) => `${namespaceOf(at.space)}::${at.key}`,
  // The first version called indexes rankings, and existing stores have these keys.
  index: (name) => `parley:ranking::${name}`,
};

/**
 * The names in a cluster. A hash tag keeps a group on one server. Each conversation's messages, settings and
 * pictures are a group, so that what grows is spread. The inbox and the sorted indexes are one group, the
 * counts another.
 */
export const clusterNames: KeyNames = {
  entry: (at) => `${namespaceOf(at.space)}::${tagOfEntry(at)}${at.key}`,
  index: (name) => `parley:ranking::${tagOfIndex(name)}${name}`,
};

/** The key within its space of a name in that space. */
export function keyOf(name: string): string {
  return name.replace(/^\{[^}]*\}/, "");
}

const blobsPrefix = "blobs:";

/** The hash tag of an entry, which is also the name of its group. */
export function tagOfEntry({ space, key }: EntryAddress): string {
  switch (space) {
    case "head":
    case "settings":
    case "summary":
    case "slot":
    case "id":
      return toTag(folderOfEscaped(key.split("/", 1)[0] ?? ""));
    case "blob":
      return toTag(key.split("/", 1)[0] ?? "");
    case "inbox":
    case "turn":
    case "layer":
    case "record":
    case "meta":
      return "{parley}";
  }
}

/** The hash tag of an index, like {@link tagOfEntry}. */
export function tagOfIndex(name: string): string {
  if (name.startsWith(blobsPrefix)) return toTag(name.slice(blobsPrefix.length));
  return name.startsWith(countedPrefix) || name === indexes.countedIndexes ? "{ledger}" : "{parley}";
}

/** A digest, because it contains no brace. */
function folderOfEscaped(escaped: string): string {
  const id = escaped.replaceAll("%2F", "/").replaceAll("%25", "%");
  return createHash("sha256").update(id).digest("hex").slice(0, 32);
}

function toTag(folder: string): string {
  return `{${folder}}`;
}

/** A field of `INFO`, if it has it. */
export function fieldOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
}

/** The product's name by its `INFO`. Valkey also claims to be Redis, for programs that know only that. */
export function productOf(info: string): "Redis" | "Valkey" {
  return fieldOf(info, "server_name") === "valkey" ? "Valkey" : "Redis";
}
