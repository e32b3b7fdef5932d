import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { z } from "zod";

/** The value of a setting with the answers so far, which is empty if it is not set. */
type InForce = (name: string) => string;

/** How `parley setup` asks for a setting. */
export interface Question {
  readonly text: string;
  /** The rest of the part is skipped if this answer is empty. */
  readonly isGate?: true;
  /** Whether it is asked. `isOn` says whether the platform of the part is. Default: always. */
  readonly when?: (inForce: InForce, isOn: boolean) => boolean;
  /** Makes it a yes/no question. Yes stands for this value, and no for the default. */
  readonly yes?: { readonly value: string; readonly is: (value: string) => boolean };
}

/**
 * A setting: an environment variable. Configuration, `.env.example`, docs/settings-reference.md, the
 * doctor and `parley setup` read all that they say of it from here.
 */
export interface Setting {
  /** It receives the variable's text, or `undefined` if the variable is not set. */
  readonly schema: z.ZodType;
  /** One line of Markdown. */
  readonly description: string;
  /** Further sentences for the comment in `.env.example`. */
  readonly note?: string;
  /** The default as shown, if the schema's own says too little, such as "first able". */
  readonly shownDefault?: string;
  /** Its line in `.env.example` is a comment, because a container and the systemd unit set it themselves. */
  readonly isOfPlace?: true;
  /** Marks tokens, keys and passwords, which are never logged. Of `pairs`, only the values are secret. */
  readonly isSecret?: true | "pairs";
  /** An address, to which setup adds the scheme that people leave out. */
  readonly isAddress?: true;
  /** Finds what is well-formed and hardly meant. Ends a sentence that begins with the name. */
  readonly warn?: (value: unknown, values: Readonly<Record<string, unknown>>) => string | undefined;
  readonly question?: Question;
}

/** A part of the dialogue of `parley setup`. */
export interface SetupPart {
  readonly intro: string;
  /** A yes/no question that comes first, unless this setting is set. No skips the part. */
  readonly isWanted?: { readonly text: string; readonly is: string };
  /** The settings that are asked for, in this order. */
  readonly asks: readonly string[];
  /** The doctor's part that checks the answers. Default: the one with the same title. */
  readonly checkedBy?: string;
}

export type Settings = Readonly<Record<string, Setting>>;

/** The checked values of settings. */
export type SettingValues<S extends Settings> = { readonly [K in keyof S]: z.output<S[K]["schema"]> };

/** A text of which white space at both ends is removed. */
export const text = z.string().trim();

/** A number. `Number` reads 0x50 too, which nobody means. */
const number = text
  .refine((value) => !/^[-+]?0[xbo]/i.test(value), {
    message: "must be a number in decimal digits",
    abort: true,
  })
  .pipe(z.coerce.number());

/** A number within bounds. */
export const numberFrom = (min: number, max: number) => number.pipe(z.number().min(min).max(max));

/** A whole number within bounds. */
export const integerFrom = (min: number, max: number) => number.pipe(z.number().int().min(min).max(max));

/** A whole number of milliseconds from 1 to one day. */
export const milliseconds = integerFrom(1, 86_400_000);

/** A TCP port, where 0 takes any free one. */
export const port = integerFrom(0, 65_535);

/** A list of values separated by commas, without empty ones. */
export const list = text.transform((value) =>
  value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== ""),
);

/** Host names and addresses in lower case, each with a port or without, in the form that a URL has. */
export const hostList = list
  .transform((hosts) => hosts.map((host) => host.toLowerCase()))
  .refine(
    (hosts) =>
      hosts.every((entry) => {
        if (entry.includes("*") || !URL.canParse(`http://${entry}`)) return false;
        const { host, hostname } = new URL(`http://${entry}`);
        return entry === host || entry === `${hostname}:80`;
      }),
    "must be host names written out, such as chat.example.com, without * and http://",
  )
  .default([]);

/** An http or https address without credentials. */
export const httpUrl = text.refine(
  (value) =>
    URL.canParse(value) && /^https?:$/.test(new URL(value).protocol) && new URL(value).username === "",
  "must be an http:// or https:// address without a user name",
);

/**
 * Warns of an address through which a secret setting would go unencrypted over the internet.
 * @param key the setting with the secret
 */
export const sendsInTheClear =
  (key: string): NonNullable<Setting["warn"]> =>
  (address, { [key]: secret }) => {
    const host = [secret].flat().some(Boolean) ? publicHostInTheClear(address) : undefined;
    return host === undefined ? undefined : `sends ${key} unencrypted to ${host}: write https://`;
  };

/** The host of an http:// address that others can be on the way to. */
export function publicHostInTheClear(address: unknown): string | undefined {
  if (typeof address !== "string" || !URL.canParse(address)) return undefined;
  const { protocol, hostname } = new URL(address);
  return protocol === "http:" && isPublicHost(hostname) ? hostname : undefined;
}

/** Ends a sentence that begins with a setting's name and says what is wrong. It never quotes the text. */
export function toProblem(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.expected === "number" ? "must be a number" : `must be ${issue.expected}`;
    case "too_small":
      return issue.origin === "string" ? issue.message : `must be at least ${issue.minimum}`;
    case "too_big":
      return `must be at most ${issue.maximum}`;
    case "unrecognized_keys":
      return `has the unknown field ${issue.keys.join(", ")}`;
    case "invalid_value":
      return `must be one of ${issue.values.join(", ")}`;
    default:
      return issue.message;
  }
}

/** Contains all public IPv6 addresses, though some of its networks are not public. */
const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Whether an IP address is public. It is false for names, and for IPv6 addresses with a zone or an embedded
 * IPv4 address. It never throws.
 */
export function isPublicAddress(text: string): boolean {
  if (isIP(text) === 0 || text.includes("%")) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== "unicast") return false;
  return address.kind() === "ipv4" || address.match(globalUnicast);
}

/**
 * Whether a URL's host may be public: a public address, or a name with a dot outside of local networks. Names
 * are not resolved. `URL` has already normalised spellings such as 0x7f.1 or 2130706433.
 */
export function isPublicHost(hostname: string): boolean {
  const host = hostname.replaceAll(/^\[|\]$/g, "").replace(/\.$/, "");
  if (isIP(host) !== 0) return isPublicAddress(host);
  return (
    !/(^|\.)(localhost|localdomain|local|internal|intranet|lan|home|corp|home\.arpa)$/i.test(host) &&
    host.includes(".")
  );
}
