import type { ModelOperation } from "./gateway.ts";
import type { Choice, Layer, SettingGroup } from "./layered-settings.ts";

/** A form that a person may open. */
export interface FormOffer {
  /** An opaque key of at most 100 characters. */
  readonly key: string;
  /** Says in at most 75 characters what it changes, for example "This channel: models". */
  readonly label: string;
  /** Where its settings apply, for example "This channel". */
  readonly scope: string;
  /** The layer whose settings it changes. */
  readonly layer: Layer;
  readonly group: SettingGroup;
}

/** One input of a form. */
export interface FormField {
  /** The key of its value. It has at most 32 characters. */
  readonly name: string;
  /** It has at most 45 characters. */
  readonly label: string;
  /** It has at most 100 characters. */
  readonly description: string;
  /** What the field shows at first. Empty means that nothing is set. */
  readonly value: string;
  /** Says in a sentence what is wrong with `value`, when the form is shown again. */
  readonly problem?: string;
  /**
   * What can be chosen, besides nothing. The field takes text if it is absent. A platform that cannot show so
   * many options takes text too, and submitted values are always checked.
   */
  readonly options?: readonly Choice[];
  /**
   * Set where the options are the models that support this operation. A platform with search while typing
   * asks {@link Receiver.suggestModels}.
   */
  readonly models?: ModelOperation;
  /** The longest text, at most 3,000 characters. */
  readonly maxChars: number;
  /** Whether a text may have several lines. */
  readonly isLong: boolean;
  /** Says in at most 100 characters what applies while nothing is set. */
  readonly placeholder: string;
  /** Whether it must be filled in. Default false. */
  readonly isRequired?: boolean;
}

/** A form of one to five fields. */
export interface Form {
  readonly key: string;
  /** It has at most 24 characters. */
  readonly title: string;
  /** Says in a sentence whom the changes affect. */
  readonly introduction: string;
  readonly fields: readonly FormField[];
  /** The label of the submit button, at most 24 characters. Default "Save". */
  readonly submitLabel?: string;
}
