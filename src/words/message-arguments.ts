/** A value for a message. Numbers are formatted for the language unless they are given as text. */
export type ArgumentValue = string | number;

/** The word before the text of a plural's branch. */
type Branch = "zero" | "one" | "two" | "few" | "many" | "other" | `=${number}`;

/** The names of a message's arguments. Those of plurals and number formats take numbers. */
type Found<
  Text extends string,
  Names extends string,
  Numbers extends string,
> = Text extends `${infer Before}{${infer After}`
  ? Before extends `, ${Branch} ` | `${string}} ${Branch} `
    ? Found<After, Names, Numbers>
    : After extends `${infer Name}, plural${infer Rest}`
      ? IsName<Name> extends true
        ? Found<Rest, Names, Numbers | Name>
        : FoundPlain<After, Names, Numbers>
      : FoundPlain<After, Names, Numbers>
  : { readonly names: Names; readonly numbers: Numbers };

type FoundPlain<
  After extends string,
  Names extends string,
  Numbers extends string,
> = After extends `${infer Content}}${infer Rest}`
  ? Content extends `${infer Name}, number${string}`
    ? Found<Rest, Names, Numbers | Name>
    : Found<Rest, Names | Content, Numbers>
  : { readonly names: Names; readonly numbers: Numbers };

type IsName<Name extends string> = Name extends `${string}}${string}` ? false : true;

type ToArguments<F extends { readonly names: string; readonly numbers: string }> = {
  readonly [N in Exclude<F["names"], F["numbers"]>]: ArgumentValue;
} & { readonly [N in F["numbers"]]: number };

/**
 * The arguments of a message in ICU syntax, which the compiler reads from its text. `{name}` takes a text or
 * a number, `{count, plural, …}` and `{count, number}` take a number.
 * @see https://unicode-org.github.io/icu/userguide/format_parse/messages/
 */
export type MessageArguments<Text extends string> = ToArguments<Found<Text, never, never>>;
