import type { IncomingMessage, ServerResponse } from "node:http";
import type { Command } from "./command.ts";
import type { Platform } from "./platform.ts";
import type { Settings, SettingValues } from "./settings.ts";
import type { Log } from "./telemetry.ts";

/** Answers a request of Parley's HTTP server, or returns false: it is for somebody else. Contract: must not throw. */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

/** What the composition gives every platform. */
export interface PlatformDependencies {
  readonly commands: ReadonlyMap<string, Command>;
  /** Marks its lines with the platform. */
  readonly log: Log;
  /** Absolute folder for files of the platform's own. */
  readonly dataDir: string;
  /** The address that Parley's HTTP server listens on. */
  readonly host: string;
  /** The model gateway, in words for people. */
  readonly gateway: { readonly name: string; readonly isSandbox: boolean };
}

/** A platform ready to start, with its part of the HTTP server where it has one. */
export interface CreatedPlatform {
  readonly platform: Platform;
  readonly handler?: HttpHandler;
}

/** A command of the command line that belongs to a platform, such as one that prints its manifest. */
export interface PlatformTool<S extends Settings = Settings> {
  /** One line for `--help`. */
  readonly description: string;
  /** Resolves to what is printed. */
  run(values: SettingValues<S>, commands: ReadonlyMap<string, Command>): Promise<string>;
}

/** What the start line of a platform may mention. */
export interface StartLineContext {
  readonly isOn: boolean;
  /** Of Parley's HTTP server. */
  readonly url: string;
}

/**
 * One chat platform as the composition knows it. Settings, start lines, the README's table and the platform itself
 * derive from it. It is loaded at every start, so it imports no SDK: `load` does.
 */
export interface PlatformModule<S extends Settings = Settings> {
  /** {@link Platform.id} */
  readonly id: string;
  /** For people, at most 8 characters. */
  readonly title: string;
  readonly settings: S;
  /** `alone`: on only where no other platform is. */
  isOn(values: SettingValues<S>): boolean | "alone";
  /** What is wrong between settings that are each right: one sentence each, with the remedy. */
  problems(values: Partial<SettingValues<S>>): readonly string[];
  /** What follows the title at the start: `on   connecting`, or `off  ` and the setting that turns it on. */
  startLine(values: SettingValues<S>, context: StartLineContext): string;
  /** By the word that is typed after `node src/main.ts`. */
  readonly tools: Readonly<Record<string, PlatformTool<S>>>;
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
