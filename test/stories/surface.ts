import type { ListedModel, ScriptedModel } from "./scripted-model.ts";

/** Where stories are told. */
export type SurfaceName = "Discord" | "Slack by socket" | "Slack by HTTP";

/** How many times sooner what Parley waits for is over, where a story does not tell of time itself. */
export const haste = 8;

/** A file that somebody sends. */
export interface SentFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** A channel, direct messages or a thread. */
export interface Place {
  readonly id: string;
  /** The bot's messages here, oldest first, with those that only one person sees; without those in threads below it. */
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

/** A question that was answered: in a channel in a thread that it opens. */
export interface Talk {
  readonly said: Said;
  /** Where the conversation goes on. */
  readonly place: Place;
  readonly answer: Shown;
}

/** How a message is written. */
export interface Writing {
  /** With a mention of the bot. */
  readonly mention?: boolean;
  readonly files?: readonly SentFile[];
}

/** Somebody at the platform's client. */
export interface Somebody {
  readonly id: string;
  readonly name: string;
  writes(place: Place, text: string, how?: Writing): Said;
  /** Writes to the bot, with a mention where it needs one, and waits for the end of the answer. */
  asks(place: Place, text: string, files?: readonly SentFile[]): Promise<Talk>;
  /** Changes a message; a mention in it stays. `adds`: a mention comes to it. */
  edits(said: Said, text: string, how?: { readonly adds?: boolean }): void;
  deletes(said: Said): void;
  /** Somebody else's link preview comes to a message: a change that is no edit. */
  getsPreview(said: Said): void;
  /** Uses a command, in Slack's threads by writing it after a mention. Files by the name of their option. */
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
  /** Fills in the form and submits it. Choices by their label. */
  submits(values: Readonly<Record<string, string>>): Promise<void>;
}

/** What settings are made of, before Parley starts. */
export interface Town {
  /** `isManager`: may change the settings of the server or workspace. */
  readonly person: (
    name: string,
    how?: { readonly locale?: string; readonly isManager?: boolean },
  ) => Somebody;
  /** A channel with these people, and all who come later on Discord. */
  readonly channel: (name: string, people: readonly Somebody[]) => Place;
  /** As rules name them: `slack:user:U1`. */
  readonly userTerm: (person: Somebody) => string;
  readonly channelTerm: (channel: Place) => string;
}

/** All of Parley on one platform's simulator, with a scripted model. */
export interface Surface extends Town {
  readonly name: SurfaceName;
  readonly model: ScriptedModel;
  /** Direct messages. */
  readonly direct: (person: Somebody) => Place;
  /** What only this person sees in the place, and the bot's direct messages to them. */
  readonly privately: (person: Somebody, place: Place) => Shown[];
  /** A thread that somebody began, below a message of theirs with this text. */
  readonly thread: (channel: Place, person: Somebody, text: string) => Place;
  /** Where an answer to a message would be, thread or not. */
  readonly below: (said: Said) => Place;
  /** Where the answer to a message in a channel comes. */
  readonly threadOf: (said: Said) => Promise<Place>;
  /** The last thread that a command has opened in a channel. */
  readonly opened: (channel: Place) => Promise<Place>;
  /** Another app writes in a thread. Returns how it changes its message. */
  readonly appWrites: (place: Place, app: string, title: string) => (title: string) => void;
  /** Somebody with rights deletes a message, the bot's too. */
  readonly removes: (place: Place, id: string) => void;
  readonly removesChannel: (channel: Place) => void;
  /** The platform delivers a message again that it has delivered. */
  readonly redelivers: (said: Said) => void;
  /** The first message of the bot in a place that `is` accepts, once the platform has it. */
  readonly shows: (place: Place, is: string | ((shown: Shown) => boolean)) => Promise<Shown>;
  /** The bot's messages in a place, once there are so many and no turn is under way. */
  readonly settled: (place: Place, count?: number) => Promise<Shown[]>;
  /** Waits until no turn is under way. */
  readonly idle: () => Promise<void>;
  /** Whether the store's files contain a text. */
  readonly isKept: (text: string) => Promise<boolean>;
  /** Waits until the store's files no longer contain a text. */
  readonly gone: (text: string) => Promise<void>;
  /** What Parley has sent to the platform, whatever is shown of it now. */
  readonly everSent: () => string;
  readonly restart: (during?: () => void) => Promise<void>;
  /** Ready for the next story. @throws Error when the platform found fault with Parley */
  readonly reset: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** How a surface is started. */
export interface SurfaceOptions {
  /** May be made of people and places. */
  readonly settings?:
    | Readonly<Record<string, string>>
    | ((town: Town) => Readonly<Record<string, string>>)
    | undefined;
  readonly models?: readonly ListedModel[] | undefined;
}
