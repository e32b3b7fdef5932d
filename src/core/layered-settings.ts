import type { ModelOperation } from "./gateway.ts";

/**
 * The layers that hold settings, the weakest first. The operator's environment variables are below all of
 * them. `server` is a Discord server, a Slack workspace or the whole page.
 */
export const layers = ["server", "channel", "person", "conversation"] as const;
export type Layer = (typeof layers)[number];

/** The words for layers in the option `for` of `/settings`. */
export const forWords: Readonly<Record<Layer, string>> = {
  server: "server",
  channel: "channel",
  person: "me",
  conversation: "here",
};

/** The groups of settings. Each group fits a form of five fields, which is the limit of a Discord modal. */
export const settingGroups = {
  models: "Models",
  answers: "Answers",
  place: "When, where and who",
  budgets: "Budgets",
} as const;
export type SettingGroup = keyof typeof settingGroups;

/** A value that a form offers. Platforms show at least 75 characters of `value` and `label`. */
export interface Choice {
  readonly value: string;
  readonly label: string;
}

type Kind =
  | { readonly kind: "model"; readonly operation: ModelOperation }
  | { readonly kind: "text"; readonly maxChars: number }
  | { readonly kind: "choice"; readonly choices: readonly Choice[] }
  | { readonly kind: "number"; readonly min: number; readonly max: number }
  /** An amount of US dollars, at least 0. */
  | { readonly kind: "usd"; readonly max: number }
  /** The word `automatic` or the English name of a language. */
  | { readonly kind: "language" }
  /** Terms as in `ALLOW`, such as `discord:role:123`. */
  | { readonly kind: "access"; readonly maxTerms: number }
  /** Budgets of roles, each as `discord:role:123=5/day`. */
  | { readonly kind: "role-budgets"; readonly maxTerms: number; readonly max: number };

/** A setting that people change in the chat. */
export type LayeredSetting = Kind & {
  /** One line of at most 100 characters. */
  readonly description: string;
  readonly group: SettingGroup;
  /** The layers that may hold it. */
  readonly layers: readonly Layer[];
  /**
   * `override` uses the value of the strongest layer that has one. `limit` applies the value of every layer,
   * so that a stronger layer loosens nothing. `add` uses the texts of all layers, one after the other.
   */
  readonly combines: "override" | "limit" | "add";
  /** Whether it needs channels and several people, which the page does not have. Default false. */
  readonly isShared?: true;
  /** Whether it needs roles, which only Discord has. Default false. */
  readonly needsRoles?: true;
};

/** What the settings of a group have in common. */
const model = { kind: "model", group: "models", layers, combines: "override" } as const;
const answers = { group: "answers", layers, combines: "override" } as const;
const places = ["server", "channel"] as const;
const budget = {
  kind: "usd",
  max: 1_000_000,
  group: "budgets",
  layers: places,
  combines: "limit",
} as const;

/**
 * Every setting that `/settings` shows and changes. Forms, texts, completion and help derive from this table.
 * @see docs/using.md
 */
export const layeredSettings = {
  "chat-model": { ...model, operation: "chat", description: "The model that answers" },
  "image-model": { ...model, operation: "image", description: "The model that draws" },
  "transcription-model": {
    ...model,
    operation: "transcription",
    description: "The model that turns recordings into text",
  },
  "system-prompt": {
    ...answers,
    combines: "add",
    kind: "text",
    maxChars: 3000,
    description: "Instructions to the model; the operator's own stay in front of them",
  },
  language: {
    ...answers,
    kind: "language",
    description: "The language of answers; automatic: the one of the question",
  },
  "answer-length": {
    ...answers,
    kind: "choice",
    choices: [
      { value: "short", label: "Short: a few sentences" },
      { value: "normal", label: "Normal" },
      { value: "long", label: "Long: in detail" },
    ],
    description: "How long answers are",
  },
  temperature: {
    ...answers,
    kind: "number",
    min: 0,
    max: 2,
    description: "How varied answers are: 0 is the most predictable",
  },
  calm: {
    ...answers,
    kind: "choice",
    choices: [
      { value: "on", label: "On" },
      { value: "off", label: "Off" },
    ],
    description: "On: an answer appears once, when it is complete, instead of growing while it is written",
  },
  "answer-to": {
    kind: "choice",
    choices: [
      { value: "addressed", label: "Messages that are said to it" },
      { value: "named", label: "Messages that mention it, reply to it or name it" },
      { value: "mentions", label: "Messages that mention it" },
      { value: "all", label: "Every message" },
    ],
    description: "Which messages of a channel and its threads are answered",
    group: "place",
    layers: ["channel"],
    combines: "override",
    isShared: true,
  },
  "answer-in": {
    kind: "choice",
    choices: [
      { value: "thread", label: "A thread of the message" },
      { value: "channel", label: "The channel itself" },
    ],
    description: "Where a message in a channel is answered; in the channel, all of it is one conversation",
    group: "place",
    layers: places,
    combines: "override",
    isShared: true,
  },
  "who-may-use": {
    kind: "access",
    maxTerms: 50,
    description:
      "Only these people and roles may ask: terms such as discord:role:1, slack:user:U1, with commas",
    group: "place",
    layers: places,
    combines: "limit",
    isShared: true,
  },
  "person-budget": {
    ...budget,
    description: "What one person may spend a day, in US dollars; what they spent elsewhere counts",
    isShared: true,
  },
  "person-budget-month": {
    ...budget,
    description: "What one person may spend a calendar month, in US dollars",
    isShared: true,
  },
  "place-budget": { ...budget, description: "What all people may spend here a day, in US dollars" },
  "place-budget-month": {
    ...budget,
    description: "What all people may spend here a calendar month, in US dollars",
  },
  "role-budgets": {
    ...budget,
    kind: "role-budgets",
    maxTerms: 20,
    description: "What all people of a role may spend together: such as discord:role:1=5/day, with commas",
    layers: ["server"],
    isShared: true,
    needsRoles: true,
  },
} as const satisfies Readonly<Record<string, LayeredSetting>>;

export type SettingName = keyof typeof layeredSettings;

export const settingNames = Object.keys(layeredSettings) as readonly SettingName[];

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(layeredSettings, name);
}

/** A setting's declaration, without its literal types. */
export function declarationOf(name: SettingName): LayeredSetting {
  return layeredSettings[name];
}

export function mayHold(layer: Layer, name: SettingName): boolean {
  return declarationOf(name).layers.includes(layer);
}

type ValueOf<S> = S extends { readonly choices: readonly { readonly value: infer V }[] }
  ? V
  : S extends { readonly kind: "number" | "usd" }
    ? number
    : S extends { readonly kind: "access" | "role-budgets" }
      ? readonly string[]
      : string;

export type LayerValues = { readonly [N in SettingName]?: ValueOf<(typeof layeredSettings)[N]> };

export type SettingValue = string | number | readonly string[];

/** A change of settings. `undefined` removes the value from the layer. */
export type LayerChange = { readonly [N in SettingName]?: SettingValue | undefined };

/** A value in force and its layer. */
export interface EffectiveValue<V = SettingValue> {
  readonly value: V;
  readonly from: Layer;
}

/** The values in force of `override` settings. A setting without a value in any layer is absent. */
export type EffectiveValues = {
  readonly [N in SettingName]?: EffectiveValue<NonNullable<LayerValues[N]>>;
};

/** The values of each layer that exists in a place. */
export type LayeredValues = Readonly<Partial<Record<Layer, LayerValues>>>;

/** Takes for each `override` setting the value of the strongest layer that has one. */
export function resolveLayers(all: LayeredValues): EffectiveValues {
  const effective: Partial<Record<SettingName, EffectiveValue>> = {};
  for (const layer of layers) {
    for (const name of settingNames) {
      const value = all[layer]?.[name];
      if (value !== undefined && declarationOf(name).combines === "override")
        effective[name] = { value, from: layer };
    }
  }
  return effective as EffectiveValues;
}

/**
 * What people set for servers, channels and persons. Holder ids are opaque. It throws `store-unavailable`.
 */
export interface SettingsStore {
  /** Reads the values of several holders in one round trip, in their order. `{}`: nothing is set. */
  read(holders: readonly string[]): Promise<readonly LayerValues[]>;
  /** Changes some values of a holder and keeps the others. The change is durable when this resolves. */
  change(holder: string, change: LayerChange): Promise<void>;
  /** Removes everything that is set for a holder. */
  erase(holder: string): Promise<void>;
}
