import type { ListedModel, ScriptedModel } from "./scripted-model.ts";

/** The places where stories are told. */
export type SurfaceName = "Discord" | "Slack by socket" | "Slack by HTTP";

/** Parley's waits are so many times shorter, where a story is not about time itself. */
export const haste = 8;

/** A file that somebody sends. */
export interface SentFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** A channel, direct messages or a thread. */
export interface Place {
  readonly id: string;
  /** Returns the bot's messages here, oldest first: private ones too, but none of the threads below. */
  shown(): Shown[];
}

/** A message of a person. */
export interface Said {
  readonly id: string;
  readonly place: Place;
}

/** One message of the bot, as people see it. */
export interface Shown {
  readonly id: string;
  readonly place: Place;
  readonly text: string;
  /** The lines below the text in small print. */
  readonly smallPrint: string;
  /** Without those that rate the answer. */
  readonly buttons: readonly string[];
  /** Whether it can be rated. */
  readonly canBeRated: boolean;
  /** The name of the only person who sees it. */
  readonly onlyFor: string | undefined;
  readonly files: readonly {
    readonly name: string;
    readonly altText: string | undefined;
    readonly bytes: Uint8Array;
  }[];
  /** Whether it notifies somebody. */
  readonly pings: boolean;
  /** Whether links in it are shown with a preview. */
  readonly previews: boolean;
  readonly edits: number;
}

/** An input of a form: its label, whether it must be filled in, and the labels of what can be chosen. */
export interface SeenInput {
  readonly label: string;
  readonly isRequired: boolean;
  readonly choices: readonly string[];
}

/** A question that was answered. In a channel, the answer is in a thread that the question opens. */
export interface Talk {
  readonly said: Said;
  /** The conversation goes on here. */
  readonly place: Place;
  readonly answer: Shown;
}

/** How a message is written. */
export interface Writing {
  /** Whether it mentions the bot. */
  readonly mention?: boolean;
  readonly files?: readonly SentFile[];
}

/** Somebody at the platform's client. */
export interface Somebody {
  readonly id: string;
  readonly name: string;
  /** `<@id>` in the text is a mention of that person. */
  writes(place: Place, text: string, how?: Writing): Said;
  /** Writes to the bot, with a mention where it needs one, and waits for the end of the answer. */
  asks(place: Place, text: string, files?: readonly SentFile[]): Promise<Talk>;
  /** Changes a message. A mention in it stays, and `adds` adds one. */
  edits(said: Said, text: string, how?: { readonly adds?: boolean }): void;
  deletes(said: Said): void;
  /** Adds a link preview of another app to a message. The platform reports a change that is no edit. */
  getsPreview(said: Said): void;
  /** Uses a command. In Slack's threads it is written after a mention. Files go by their option's name. */
  uses(
    command: string,
    options: Readonly<Record<string, string | number | boolean>>,
    place: Place,
    files?: Readonly<Record<string, SentFile>>,
  ): Promise<void>;
  /** Uses a command of a message. */
  usesOn(label: string, said: Said): Promise<void>;
  /** Presses a button, or chooses what has this label in a message's select. */
  presses(label: string, shown: Shown): Promise<void>;
  /** Presses the button that rates an answer. */
  rates(rating: "good" | "bad", shown: Shown): Promise<void>;
  /** The form that opened after the last command or press. */
  form(): Promise<SeenInput[]>;
  /** Fills in the form and submits it. Choices are given by their label. */
  submits(values: Readonly<Record<string, string>>): Promise<void>;
}

/** The people and places that settings may name, before Parley starts. */
export interface Town {
  /** Returns somebody new. With `isManager` they may change the settings of the server or workspace. */
  readonly person: (
    name: string,
    how?: { readonly locale?: string; readonly isManager?: boolean },
  ) => Somebody;
  /** Returns a channel with these people. On Discord all who come later are in it too. */
  readonly channel: (name: string, people: readonly Somebody[]) => Place;
  /** Returns the name of a person in access rules, such as `slack:user:U1`. */
  readonly userTerm: (person: Somebody) => string;
  readonly channelTerm: (channel: Place) => string;
}

/** All of Parley on one platform's simulator, with a scripted model. */
export interface Surface extends Town {
  readonly name: SurfaceName;
  readonly model: ScriptedModel;
  /** Returns the direct messages of a person with the bot. */
  readonly direct: (person: Somebody) => Place;
  /** Returns what only this person sees in the place, and the bot's direct messages to them. */
  readonly privately: (person: Somebody, place: Place) => Shown[];
  /** Begins a thread below a message of this person with this text. */
  readonly thread: (channel: Place, person: Somebody, text: string) => Place;
  /** Returns the place where an answer to a message would be, whether it is a thread or not. */
  readonly below: (said: Said) => Place;
  /** Resolves to the place of the answer to a message in a channel. */
  readonly threadOf: (said: Said) => Promise<Place>;
  /** Resolves to the last thread that a command has opened in a channel. */
  readonly opened: (channel: Place) => Promise<Place>;
  /** Lets another app write in a thread. Returns a function that changes its message. */
  readonly appWrites: (place: Place, app: string, title: string) => (title: string) => void;
  /** Lets somebody with the rights for it delete a message, which may be the bot's. */
  readonly removes: (place: Place, id: string) => void;
  readonly removesChannel: (channel: Place) => void;
  /** Lets the platform deliver a message again. */
  readonly redelivers: (said: Said) => void;
  /** Resolves to the first message of the bot in a place that `is` accepts, once the platform has it. */
  readonly shows: (place: Place, is: string | ((shown: Shown) => boolean)) => Promise<Shown>;
  /** Resolves to the bot's messages in a place, once there are so many and no turn is under way. */
  readonly settled: (place: Place, count?: number) => Promise<Shown[]>;
  /** Waits until no turn is under way. */
  readonly idle: () => Promise<void>;
  /** Whether the store's files contain a text. */
  readonly isKept: (text: string) => Promise<boolean>;
  /** Waits until the store's files do not contain a text. */
  readonly gone: (text: string) => Promise<void>;
  /** Returns what Parley has sent to the platform, whatever is shown of it now. */
  readonly everSent: () => string;
  readonly restart: (during?: () => void) => Promise<void>;
  /** Makes the surface ready for the next story. @throws Error when the platform found fault with Parley */
  readonly reset: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** The options of a surface. */
export interface SurfaceOptions {
  /** The settings may depend on people and places. */
  readonly settings?:
    | Readonly<Record<string, string>>
    | ((town: Town) => Readonly<Record<string, string>>)
    | undefined;
  readonly models?: readonly ListedModel[] | undefined;
}
