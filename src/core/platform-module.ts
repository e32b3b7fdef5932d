import type { IncomingMessage, ServerResponse } from "node:http";
import type { Check } from "./checks.ts";
import type { Command } from "./command.ts";
import type { GatewayOutlook } from "./gateway.ts";
import type { Platform } from "./platform.ts";
import type { Settings, SettingValues, SetupPart } from "./settings.ts";
import type { Claims, Records } from "./storage.ts";
import type { Log, Meter } from "./telemetry.ts";
import type { Clock } from "./clock.ts";

/** The target of a request, which the HTTP server parses once. Handlers read nothing else of its URL. */
export interface RequestTarget {
  /** It begins with `/` and has no empty or dot segments, percent-encoding or backslashes. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/**
 * Handles a request of Parley's HTTP server, which has checked the Host header. Resolves to false, without a
 * response, if the path belongs to another handler. It must not throw.
 */
export type HttpHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  target: RequestTarget,
) => Promise<boolean>;

/** Encrypts files of a platform at rest with the store's keys. Without keys the bytes stay unchanged. */
export interface Sealer {
  /** Seals the bytes for `name`. They cannot be opened under another name. */
  readonly seal: (name: string, bytes: Uint8Array) => Uint8Array;
  /**
   * @throws ParleyError `store-corrupt` where the bytes were changed, sealed under another name, or are not
   * encrypted although there are keys, and `config` where their key is not among the settings
   */
  readonly open: (name: string, sealed: Uint8Array) => Uint8Array;
}

/** Erases the files that a platform keeps beside the store. It runs before the store's own erasure. */
export interface FileErasure {
  /** Erases the files that an author sent in one conversation, or in all of them if that is `undefined`. */
  forgetAuthor(conversationId: string | undefined, authorId: string): Promise<void>;
  /** Erases the files of a conversation. It ignores conversations of other platforms. */
  deleteConversation(conversationId: string): Promise<void>;
}

/** What every platform receives from the composition. */
export interface PlatformDependencies {
  readonly commands: ReadonlyMap<string, Command>;
  /** Its lines are marked with the platform. */
  readonly log: Log;
  readonly meter: Meter;
  /** The absolute path of a folder for the platform's own files. */
  readonly dataDir: string;
  readonly sealer: Sealer;
  /** The longest time that anything is kept, or `undefined` for ever. */
  readonly retentionMs: number | undefined;
  /** The address on which Parley's HTTP server listens. */
  readonly host: string;
  /** The claims of the store. */
  readonly claims: Claims;
  /** The records of the store. A platform's keys begin with its id. */
  readonly records: Records;
  readonly clock: Clock;
  /** The model gateway, as the platform describes it to people. */
  readonly gateway: { readonly name: string; readonly isSandbox: boolean; readonly outlook: GatewayOutlook };
}

/** A platform that is ready to start, with its part of the HTTP server if it has one. */
export interface CreatedPlatform {
  readonly platform: Platform;
  readonly handler?: HttpHandler;
  /** More Host values that the HTTP server must accept. */
  readonly allowedHosts?: readonly string[];
  /** Paths that are served under every Host, because their handler checks the signature of requests. */
  readonly signedPaths?: readonly string[];
  readonly erasure?: FileErasure;
}

/** A shell command that belongs to a platform, such as one that prints its manifest. */
interface PlatformTool<S extends Settings = Settings> {
  /** One line for `--help`. */
  readonly description: string;
  /** Resolves to the text to print. */
  run(values: SettingValues<S>, commands: ReadonlyMap<string, Command>): Promise<string>;
}

/** What the start line of a platform may depend on. */
interface StartLineContext {
  readonly isOn: boolean;
  /** The address of Parley's HTTP server. */
  readonly url: string;
}

/** What the start of a platform may depend on besides its settings. */
interface DeploymentContext {
  /** The address on which Parley's HTTP server is to listen. */
  readonly host: string;
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
 * A chat platform as the composition knows it. Settings, start lines, docs/settings-reference.md and the
 * platform itself derive from it. Every start imports it, so only `load` may import an SDK.
 */
export interface PlatformModule<S extends Settings = Settings> {
  /** The same as {@link Platform.id}. */
  readonly id: string;
  /** The name for people, at most 8 characters. */
  readonly title: string;
  readonly settings: S;
  /** How `npm run setup` asks for them. By default it does not. */
  readonly setup?: SetupPart;
  /**
   * The kinds of people and places that access rules can list, with the form of their ids. A term is
   * `<platform>:<kind>:<id>`. An empty table means that everybody on the platform is an admin.
   */
  readonly accessTerms: Readonly<Record<string, RegExp>>;
  /** The operator owns it although rules can list people. Events without an origin are the operator's. */
  readonly isOperatorsOwn?: true;
  /** `alone` means that it is on only if no other platform is. */
  isOn(values: SettingValues<S>): boolean | "alone";
  /** Problems between settings that are valid by themselves. Each is a sentence with the remedy. */
  problems(values: Partial<SettingValues<S>>): readonly string[];
  /** Such problems that keep the bot from starting but no other command. By default there are none. */
  startProblems?(values: Partial<SettingValues<S>>, context: DeploymentContext): readonly string[];
  /**
   * The text after the title at the start: `on   connecting`, or `off  ` and the setting that turns it on.
   */
  startLine(values: SettingValues<S>, context: StartLineContext): string;
  /** The tools by the word that is typed after `node src/main.ts`. */
  readonly tools: Readonly<Record<string, PlatformTool<S>>>;
  /** Checks the settings against the real service, for `npm run doctor` and `npm run setup`. */
  checks?(values: SettingValues<S>, context: PlatformCheckContext): Promise<readonly Check[]>;
  /**
   * Imports the platform, whose `create` may be called at once. `create` throws a ParleyError `config` where
   * the settings do not fit the deployment.
   */
  load(): Promise<{ create(values: SettingValues<S>, dependencies: PlatformDependencies): CreatedPlatform }>;
}

/** Declares a platform. The types of its settings' values follow from the declaration. */
export function definePlatform<const S extends Settings>(module: PlatformModule<S>): PlatformModule {
  return module;
}
