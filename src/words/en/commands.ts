/** What commands tell people, also about how a command was written wrongly. */
export const commandMessages = {
  "option.no-free-text": "this command takes no text",
  "option.unknown": "there is no such option",
  "option.needed": "this is missing",
  "option.text": "it must be text",
  "option.too-long": "at most {max} characters",
  "option.choice": "one of {choices}",
  "option.integer": "a whole number from {min} to {max}",
  "option.boolean": "yes or no",
  "option.file": "it must be a file",
  "option.address": "an address must start with https:// and be public",
  "option.file-unfit": "this command does not take this file; remove it or send it without the command",
  "option.message-without.text": "the message has no text",
  "option.message-without.audio": "the message has no voice note or recording",
  "option.message-without.image": "the message has no picture",
  "command.only-slash": "only you may see its answer: use it as a slash command",
  "command.only-in-conversation":
    "it works inside a thread or direct message. Where threads have no slash commands, mention me there and write /{command} after it",

  "ask.wrote": "{name} wrote:",
  "chat.untitled": "New conversation",
  "chat.opened": "The conversation is open. Write your first message there.",
  "chat.opened.go-on": "The conversation is open. Go on there.",
  "dismiss.done":
    "I have left this thread: from now on I answer here only when you mention me. `/chat` calls me back.",
  "dismiss.not-here": "it works in threads: here every message is for me",
  "summarize.since":
    "it is `2h`, `3d`, `today`, `yesterday` or a date such as 2026-11-20, at most a year ago",
  "summarize.reading": "Reading what was said",
  "summarize.reading.part": "Reading part {part, number} of {parts, number}",
  "summarize.writing": "Summing up",
  "summarize.nothing":
    "There is nothing here that I could sum up. In a thread, mention me there and write `/summarize` after it.",
  "summarize.nothing-since": "Nothing was said here since then.",
  "summarize.basis":
    "Read: {messages, plural, one {# message} other {# messages}} of {people, plural, one {# person} other {# people}}, from {from} to {to} UTC.",
  "summarize.basis.apps":
    "Read: {messages, plural, one {# message} other {# messages}} of {people, plural, one {# person} other {# people}} and {apps, plural, one {# app} other {# apps}}, from {from} to {to} UTC.",
  "summarize.left-out":
    "{count, plural, one {# older message was} other {# older messages were}} left out: there is too much for one summary. Ask for a later `since`.",
  "summarize.older": "Older messages were not read.",
  "imagine.size": "it is <width>x<height> in pixels, such as 1024x1024",
  "reset.done": "Started over. The model no longer sees what was said before.",
  "reset.nothing": "Nothing has been said here yet.",
  "export.title": "Everything that is kept of this conversation:",
  "export.archive-too-large":
    "The pictures and recordings are too large for an answer. The button above the chat downloads all of it.",
  "export.more":
    "{count, plural, one {# more file is} other {# more files are}} kept; ask your admin for a backup to have them all.",

  "forget.here": "in this conversation",
  "forget.everywhere": "in all your conversations on this platform",
  "forget.nothing": "There is nothing of yours {place}.",
  "forget.was-nothing": "There was nothing of yours {place}.",
  "forget.ask":
    "This removes {what} {place} for good. Where nobody else took part, the whole conversation goes, with the answers; elsewhere only what you said. What Discord or Slack itself keeps stays there. `/export` gives you a copy first.",
  "forget.or-write": "Or write {command}",
  "forget.removed": "Removed {place}: {what}.",
  "forget.messages": "{count, plural, one {{count} message} other {{count} messages}}",
  "forget.files": "{count, plural, one {{count} file} other {{count} files}}",
  "forget.settings": "{count, plural, one {{count} setting} other {{count} settings}}",
  "forget.ratings": "{count, plural, one {{count} rating} other {{count} ratings}}",
  "forget.conversations":
    "{parts} ({count, plural, one {{count} whole conversation} other {{count} whole conversations}})",
  "forget.and": " and ",
  "forget.button": "Remove",
  "forget.button.count": "Remove {count, plural, one {{count} message} other {{count} messages}}",

  "models.empty":
    "The gateway lists no models. An admin can name one with CHAT_MODEL, or see what is wrong with `npm run doctor`.",
  "models.none": "No model has {search} in its name; there are {all} in all.",
  "models.all": "{found} of {all} models:",
  "models.match": "{found} of {all} models match:",
  "models.more": "…and {count} more. Narrow it: /models <part of a name>",
  "models.chats": "chats",
  "models.sees": "sees pictures",
  "models.draws": "draws",
  "models.transcribes": "transcribes",
  "models.usual": "(default for {operations})",
  "operation.chat": "chat",
  "operation.image": "image",
  "operation.transcription": "transcription",
} as const;
