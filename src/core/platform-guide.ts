/** What `/help` says of a platform. */
export interface PlatformGuide {
  /** Put before each command's name. Usually empty. */
  readonly commandPrefix: string;
  /** Whether it shows commands and options by their names in the person's language. Otherwise in English. */
  readonly hasLocalNames: boolean;
  /** How people talk to the bot, in the language of the person who asks: one Markdown sentence or two each. */
  readonly speaking: readonly string[];
  /** Whether a message has a menu with the message commands. */
  readonly hasMessageMenus: boolean;
  /** How `/export` shows pictures and recordings: each as a file, or all in one archive. People can also download that. */
  readonly exportsAs: "files" | "archive";
}
