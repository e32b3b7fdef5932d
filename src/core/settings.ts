import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { z } from "zod";

/** A setting: an environment variable with its check and its line in docs/settings-reference.md. */
export interface Setting {
  /** It receives the variable's text, or `undefined` if the variable is not set. */
  readonly schema: z.ZodType;
  /** One line of Markdown. */
  readonly description: string;
  /** The default as shown, if the schema's own says too little, such as "first able". */
  readonly shownDefault?: string;
  /** Marks tokens, keys and passwords, which are never logged. */
  readonly isSecret?: true;
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
