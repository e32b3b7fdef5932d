import { createHash } from "node:crypto";
import type { BackendChange, EntryAddress } from "../backend.ts";

/**
 * Writes everything or, if one of the first ARGV[1] keys exists, nothing; returns that key's position or -1.
 * Redis runs a script alone and persists it as one transaction. Times to live are relative, because SET takes no
 * absolute ones before Redis 6.2.
 */
const source = `
local guards = tonumber(ARGV[1])
for i = 1, guards do
  if redis.call('EXISTS', KEYS[i]) == 1 then return i - 1 end
end
local arg = 2
for i = guards + 1, #KEYS do
  local key = KEYS[i]
  local kind = ARGV[arg]
  if kind == 'set' then
    if ARGV[arg + 2] == '' then redis.call('SET', key, ARGV[arg + 1])
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
  elseif kind == 'remove-member' then redis.call('ZREM', key, ARGV[arg + 1])
  elseif kind == 'trim-index' then redis.call('ZREMRANGEBYSCORE', key, '-inf', ARGV[arg + 1])
  end
  arg = arg + 3
end
return -1
`;

/** `Backend.apply` as a Lua script, and the name under which Redis caches it. */
export const applyScript = { source, sha1: createHash("sha1").update(source).digest("hex") } as const;

/** Names of the keys that Redis sees. */
export interface KeyNames {
  entry(at: EntryAddress): string;
  index(name: string): string;
}

/** The script's input: every change is one key and three arguments. */
export function toScriptInput(
  names: KeyNames,
  ifAbsent: readonly EntryAddress[],
  changes: readonly BackendChange[],
  now: number,
): { keys: string[]; arguments: string[] } {
  const keys = ifAbsent.map((at) => names.entry(at));
  const args = [String(ifAbsent.length)];
  const ttl = (expires: number | undefined) =>
    expires === undefined ? "" : String(Math.max(1, expires - now));
  for (const change of changes) {
    switch (change.kind) {
      case "set":
        keys.push(names.entry(change.at));
        args.push("set", change.value, ttl(change.expires));
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
      case "remove-member":
        keys.push(names.index(change.index));
        args.push("remove-member", change.member, "");
        break;
      case "trim-index":
        keys.push(names.index(change.index));
        args.push("trim-index", String(change.maxScore), "");
    }
  }
  return { keys, arguments: args };
}
