import type { IncomingMessage, ServerResponse } from "node:http";
import type { Asker } from "./access.ts";
import type { Check } from "./checks.ts";
import type { Command } from "./command.ts";
import type { GatewayOutlook } from "./gateway.ts";
import type { Platform } from "./platform.ts";
import type { Settings, SettingValues } from "./settings.ts";
import type { Claims, Records } from "./storage.ts";
import type { Log, Meter } from "./telemetry.ts";
import type { Clock } from "./clock.ts";

/** The target of a request, parsed once by the HTTP server. Handlers read nothing else of the request's URL. */
export interface RequestTarget {
  /** Begins with `/`; without empty and dot segments, percent-encoding and backslashes. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/**
 * Handles a request of Parley's HTTP server, whose Host header is checked already. Resolves to false, without a
 * response, for a path of another handler. Contract: must not throw.
 */
export type HttpHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  target: RequestTarget,
) => Promise<boolean>;

/** Encrypts files of a platform's own at rest, with the store's keys. Without keys it returns the bytes as they are. */
export interface Sealer {
  /** Binds `name`: what is sealed under one name does not open under another. */
  readonly seal: (name: string, bytes: Uint8Array) => Uint8Array;
  /**
   * @throws ParleyError `store-corrupt` (changed, sealed under another name, or not encrypted although there are keys),
   *   `config` (its key is not among the settings)
   */
  readonly open: (name: string, sealed: Uint8Array) => Uint8Array;
}

/** Erases the files that a platform keeps beside the store. Called before the store erases what it has. */
export interface FileErasure {
  /** Files that one author sent, in one conversation or (`undefined`) in all. */
  forgetAuthor(conversationId: string | undefined, authorId: string): Promise<void>;
  /** Files of a conversation. Other platforms' conversations are ignored. */
  deleteConversation(conversationId: string): Promise<void>;
}

/** What the composition gives every platform. */
export interface PlatformDependencies {
  readonly commands: ReadonlyMap<string, Command>;
  /** Marks its lines with the platform. */
  readonly log: Log;
  readonly meter: Pick<Meter, "delivery" | "platformLimited">;
  /** Absolute folder for files of the platform's own. */
  readonly dataDir: string;
  readonly sealer: Sealer;
  /** How long anything is kept at most. `undefined`: for ever. */
  readonly retentionMs: number | undefined;
  /** The address that Parley's HTTP server listens on. */
  readonly host: string;
  /** Of the store. */
  readonly claims: Claims;
  /** Of the store; keys of a platform begin with its id. */
  readonly records: Records;
  readonly clock: Clock;
  /** The model gateway, in words for people. */
  readonly gateway: { readonly name: string; readonly isSandbox: boolean; readonly outlook: GatewayOutlook };
}

/** A platform ready to start, with its part of the HTTP server where it has one. */
export interface CreatedPlatform {
  readonly platform: Platform;
  readonly handler?: HttpHandler;
  /** Further Host values that the HTTP server is to serve. */
  readonly allowedHosts?: readonly string[];
  /** Paths that are served under every Host: the handler checks the signature of their requests. */
  readonly signedPaths?: readonly string[];
  readonly erasure?: FileErasure;
  /**
   * Who is logged in to an account of the platform in the browser that sends this request. `undefined`: nobody.
   * @throws ParleyError `store-unavailable`
   */
  readonly accountOf?: (request: IncomingMessage) => Promise<Asker | undefined>;
}

/** A command of the command line that belongs to a platform, such as one that prints its manifest. */
interface PlatformTool<S extends Settings = Settings> {
  /** One line for `--help`. */
  readonly description: string;
  /** Resolves to what is printed. */
  run(values: SettingValues<S>, commands: ReadonlyMap<string, Command>): Promise<string>;
}

/** What the start line of a platform may mention. */
interface StartLineContext {
  readonly isOn: boolean;
  /** Of Parley's HTTP server. */
  readonly url: string;
}

/** What a platform's start may depend on besides its settings. */
interface DeploymentContext {
  /** The address that Parley's HTTP server is to listen on. */
  readonly host: string;
  /** Whether the platform is on. */
  readonly isOn: boolean;
  /** Whether other processes may run on the same store. */
  readonly isStoreShared: boolean;
  /** Whether the store encrypts what it keeps. */
  readonly isStoreEncrypted: boolean;
}

/** What a platform's checks may depend on besides its settings. */
interface PlatformCheckContext {
  readonly commands: ReadonlyMap<string, Command>;
  readonly log: Log;
}

/**
 * One chat platform as the composition knows it. Settings, start lines, docs/settings-reference.md and the platform itself
 * derive from it. It is loaded at every start, so it imports no SDK: `load` does.
 */
export interface PlatformModule<S extends Settings = Settings> {
  /** {@link Platform.id} */
  readonly id: string;
  /** For people, at most 8 characters. */
  readonly title: string;
  readonly settings: S;
  /**
   * What access rules list people and places of this platform by: the form of the ids of each kind, so that
   * `<platform>:<kind>:<id>` is a term. Empty: the platform is the operator's own, and everybody there is an admin.
   */
  readonly accessTerms: Readonly<Record<string, RegExp>>;
  /** The operator's own although rules can list people: events and clicks without an origin are the operator's. */
  readonly isOperatorsOwn?: true;
  /** `alone`: on only where no other platform is. */
  isOn(values: SettingValues<S>): boolean | "alone";
  /** What is wrong between settings that are each right: one sentence each, with the remedy. */
  problems(values: Partial<SettingValues<S>>): readonly string[];
  /** Likewise, what keeps the bot from starting and other commands not. Default: nothing. */
  startProblems?(values: Partial<SettingValues<S>>, context: DeploymentContext): readonly string[];
  /** What follows the title at the start: `on   connecting`, or `off  ` and the setting that turns it on. */
  startLine(values: SettingValues<S>, context: StartLineContext): string;
  /** By the word that is typed after `node src/main.ts`. */
  readonly tools: Readonly<Record<string, PlatformTool<S>>>;
  /** Checks of its settings against the real service, for `npm run doctor` and `npm run setup`. Default: none. */
  checks?(values: SettingValues<S>, context: PlatformCheckContext): Promise<readonly Check[]>;
  /**
   * Imports the platform. Its `create` may be called at once.
   * @throws ParleyError `config` from `create`, where the settings do not fit the deployment
   */
  load(): Promise<{ create(values: SettingValues<S>, dependencies: PlatformDependencies): CreatedPlatform }>;
}

/** Declares a platform; the types of its settings' values follow from the declaration. */
export function definePlatform<const S extends Settings>(module: PlatformModule<S>): PlatformModule {
  return module;
}
