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
