import type { Actor } from "./access.ts";
import type { ModelOperation } from "./gateway.ts";
import type { Layer, SettingGroup } from "./layered-settings.ts";

/** A form that may be opened. */
export interface FormOffer {
  /** Opaque, at most 100 characters. */
  readonly key: string;
  /** What it changes, at most 75 characters: "This channel: models". */
  readonly label: string;
  /** What it is for: "This channel". */
  readonly scope: string;
  /** Which settings it changes. */
  readonly layer: Layer;
  readonly group: SettingGroup;
}

/** A value that a field offers; `value` and `label` as long as the platform shows them, 75 characters at least. */
export interface FormOption {
  readonly value: string;
  readonly label: string;
}

/** One input of a form. */
export interface FormField {
  /** At most 32 characters; the key of its value. */
  readonly name: string;
  /** At most 45 characters. */
  readonly label: string;
  /** At most 100 characters. */
  readonly description: string;
  /** What it shows at first; empty: nothing is set. */
  readonly value: string;
  /** What is wrong with `value`, in a sentence; set where the form is shown again. */
  readonly problem?: string;
  /**
   * What can be chosen, besides nothing. Absent: text. A platform that cannot show that many takes text instead, and
   * what is submitted is checked in any case.
   */
  readonly options?: readonly FormOption[];
  /**
   * The options are the models that can do this: a platform that searches as people type asks
   * {@link Receiver.suggestModels}.
   */
  readonly models?: ModelOperation;
  /** Of a text: at most 3,000 characters. */
  readonly maxChars: number;
  /** Whether a text has several lines. */
  readonly isLong: boolean;
  /** What applies while nothing is set, at most 100 characters. */
  readonly placeholder: string;
  /** It cannot be left empty. Default false. */
  readonly isRequired?: boolean;
}

/** A form of one to five fields. */
export interface Form {
  readonly key: string;
  /** At most 24 characters. */
  readonly title: string;
  /** Whom the changes concern, in a sentence. */
  readonly introduction: string;
  readonly fields: readonly FormField[];
  /** What submitting it does, at most 24 characters. Default "Save". */
  readonly submitLabel?: string;
}

/** What became of a submitted form: a text for the person, or one sentence for each field that is wrong. */
export type FormResult =
  | { readonly kind: "saved"; readonly text: string }
  | { readonly kind: "problems"; readonly problems: Readonly<Record<string, string>> };

/**
 * Forms that people open and submit, for platforms that can show some. A platform without them leaves the offers of a
 * reply out: everything can be typed as well. Rights are checked at each step.
 */
export interface FormDesk {
  /** What the caller may change in a conversation, and around it. */
  offers(caller: Actor, conversationId: string | undefined): readonly FormOffer[];
  /** @throws ParleyError `not-permitted`; `store-unavailable` */
  open(key: string, caller: Actor): Promise<Form>;
  /**
   * Saves all fields, or none where one is wrong. Fields that are missing stay as they are; empty ones are reset.
   * @throws ParleyError `not-permitted`; `store-unavailable`
   */
  submit(key: string, caller: Actor, values: Readonly<Record<string, string>>): Promise<FormResult>;
}
