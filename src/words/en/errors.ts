/** Says by error code what went wrong and what to do. The notices say what was left out. */
export const errorMessages = {
  "error.model": "The model",
  "error.model-named": "The model `{model}`",
  "error.file": "The file",
  "error.gateway-says": "It says: {message}",
  "error.later.moment": "in a moment",
  "error.later.seconds": "in {count, plural, one {a second} other {{count} seconds}}",
  "error.later.minutes": "in {count} minutes",
  "error.later.hours": "in {count} hours",
  "error.later.days": "in {count} days",
  "error.later.unknown": "later",

  "error.config": "Parley is misconfigured. Ask your admin to look at its log.",
  "error.stopping": "Parley is restarting and could not take this. Try again in a minute.",
  "error.busy": "Parley is busy. Try again in a minute.",
  "error.busy.person":
    "You have {waiting} requests that are not answered yet. Wait for some of the answers first.",
  "error.access.denied":
    "You cannot use Parley here: its access rules exclude you or this place. Ask your Parley admin.",
  "error.access.stranger":
    "You can use Parley in places that it is a member of. To use it here, ask your Parley admin to add {user} to ALLOW.",
  "error.access.place": "Here only some people may use Parley. Ask those who manage this place.",
  "error.access.unlisted":
    "You are not on the list of people and places that Parley answers. Ask your Parley admin to add {user} to ALLOW.",
  "error.access.you": "you",
  "error.rate-limited":
    "You have sent {max, plural, one {1 request} other {{max} requests}} within a minute, which is the limit. Try again {later}.",
  "error.budget.person.day": "your daily budget ({amount})",
  "error.budget.place.day": "the daily budget of this place ({amount})",
  "error.budget.role.day": "the daily budget of your role ({amount})",
  "error.budget.deployment.day": "Parley's daily budget for everybody ({amount})",
  "error.budget.person.month": "your monthly budget ({amount})",
  "error.budget.place.month": "the monthly budget of this place ({amount})",
  "error.budget.role.month": "the monthly budget of your role ({amount})",
  "error.budget.deployment.month": "Parley's monthly budget for everybody ({amount})",
  "error.budget.reserved": "The rest of {budget} is set aside for answers in progress. Try again {later}.",
  "error.budget.spent": "Nothing is left of {budget}.",
  "error.budget.passed": "{percent} % of {budget} is used: {left} is left.",
  "error.budget.renewed.day": "There is a new one at midnight UTC, {later}.",
  "error.budget.renewed.month": "There is a new one on {date} at midnight UTC, {later}.",
  "error.model-not-allowed": "{model} is not allowed here. /models lists what is.",
  "error.model-not-allowed.others": "{model} is not allowed here. Allowed: {allowed}. /models lists what is.",
  "error.model-not-allowed.unlisted": "{model} is not allowed here.",
  "error.model-not-allowed.others.unlisted": "{model} is not allowed here. Allowed: {allowed}.",
  "error.not-permitted": "You may not change this.",
  "error.internal":
    "Something went wrong inside Parley. Try again; if it happens again, ask your admin to look at the log.",
  "error.store-unavailable":
    "Parley cannot reach its store right now, so nothing would be kept. Try again in a moment.",
  "error.store-corrupt": "Parley's store is damaged. Ask your admin to restore a backup.",
  "error.store-newer": "Parley's store was written by a newer version. Ask your admin to update Parley.",
  "error.gateway-unreachable": "The model gateway cannot be reached. Try again {later}.",
  "error.gateway-unauthorized":
    "The model gateway does not accept Parley's key. Ask your admin to check GATEWAY_API_KEY.",
  "error.gateway-payment": "The model gateway's account has run out of credit or budget. Ask your admin.",
  "error.gateway-rate-limited": "The model gateway is rate limiting requests. Try again {later}.",
  "error.gateway-bad-request": "The model gateway did not accept the request.",
  "error.gateway-unknown-model": "There is no model `{model}`. /models lists what there is.",
  "error.gateway-unknown-model.nearest":
    "There is no model `{model}`. Did you mean `{suggestion}`? /models lists what there is.",
  "error.gateway-unknown-model.unlisted":
    "There is no model `{model}`, and the gateway has no list of those there are. Ask your admin.",
  "error.gateway-unknown-model.unnamed": "There is no model of that name. /models lists what there is.",
  "error.gateway-context-length":
    "This is more than the model can read at once. Shorten it, or start a new conversation.",
  "error.gateway-context-length.named":
    "This is more than `{model}` can read at once. Shorten it, or start a new conversation.",
  "error.gateway-refused": "{model} declined to answer this.",
  "error.gateway-timeout": "{model} took too long and was stopped. Try again {later}.",
  "error.gateway-error": "The model gateway failed. Try again {later}.",
  "error.gateway-bad-answer": "The model gateway sent an invalid response. Try again {later}.",
  "error.gateway-web-page":
    "The model gateway's address answers with a web page, not with an API. Ask your admin to check GATEWAY_BASE_URL.",
  "error.gateway-redirects":
    "The model gateway's address redirects to {address}. Ask your admin to set GATEWAY_BASE_URL to that.",
  "error.gateway-empty-answer": "{model} returned an empty answer. Try again, or rephrase it.",
  "error.no-picture": "{model} sent no picture. It may have refused what was asked: say it in other words.",
  "error.gateway-interrupted": "The answer was interrupted. What had arrived is kept above.",
  "error.gateway-unsupported": "{problem}. /models lists what there is.",
  "error.no-model": "No model of the gateway can do this",
  "error.no-model.empty":
    "The gateway lists no models. An admin can name one with CHAT_MODEL, or see what is wrong with `npm run doctor`.",
  "error.no-model.chat": "No model of the gateway can chat",
  "error.no-model.image": "No model of the gateway can draw",
  "error.no-model.image-edit": "No model of the gateway can change pictures",
  "error.no-model.transcription": "No model of the gateway can transcribe",
  "error.attachment-too-large": "{file} is too large.",
  "error.attachment-too-large.limit": "{file} is too large: at most {size}.",
  "error.attachment-empty": "{file} is empty.",
  "error.attachment-unreadable": "{file} could not be read.",
  "error.attachment-unreadable.problem": "{file} could not be read: {problem}.",
  "error.attachment-blocked": "{file} is at an address that Parley does not open. Upload the file itself.",
  "error.attachment-gone": "{file} no longer exists. Upload it again.",
  "error.unknown-command": "There is no command /{command}. There are: {commands}.",
  "error.unknown-command.nearest": "There is no command /{command}. Did you mean /{suggestion}?",
  "error.unknown-command.none": "none",
  "error.invalid-option": "/{command}: {problem}.",
  "error.invalid-option.named": "/{command} `{option}`: {problem}.",
  "error.invalid-option.unnamed": "is invalid",
  "error.usage": "Write it like this: {usage}",
  "error.platform-unauthorized": "The platform does not accept Parley's token. Ask your admin to check it.",
  "error.platform-forbidden": "Parley may not do this here. Ask your admin.",
  "error.platform-forbidden.permission":
    "Parley may not do this here: it lacks {permission}. Ask your admin.",
  "error.platform-unreachable": "The chat platform could not be reached. Try again {later}.",
  "error.platform-rejected": "The chat platform refused the answer. Ask your admin to look at the log.",
  "error.cancelled": "Stopped.",
  "error.cancelled.by": "Stopped by {name}.",
  "error.cancelled.deleted": "Stopped: the message was deleted.",
  "error.too-old": "Parley was offline when this arrived, so it was not answered automatically.",

  "notice.accepting":
    "Parley's store does not respond right now, so this is not stored yet. You may still get an answer; if there is none in two minutes, send it again.",
  "notice.hidden-content":
    "I cannot read messages here that do not mention me, because my Message Content Intent is off. Mention me in each message, or ask the admin of this bot to turn it on.",
  "notice.form-not-accepted": "Parley's store does not respond right now. Send this once more in a moment.",
  "notice.context-cut":
    "Only the last {sent, plural, one {message was} other {{sent} messages were}} sent to the model; {cut, plural, one {1 earlier one was} other {{cut} earlier ones were}} left out.",
  "notice.context-cut.more":
    "Only the last {sent, plural, one {message was} other {{sent} messages were}} sent to the model; earlier ones were left out.",
  "notice.context-cut.middle":
    "Only the first message and the last {sent, plural, one {one} other {{sent}}} were sent to the model; those between were left out.",
  "notice.context-cut.summed-up":
    "Only the last {sent, plural, one {message was} other {{sent} messages were}} sent to the model whole; earlier ones were summed up.",
  "notice.context-cut.middle-summed-up":
    "Only the first message and the last {sent, plural, one {one} other {{sent}}} were sent to the model whole; those between were summed up.",
  "notice.unread": "Not read: `{name}` ({reason}).",
  "notice.images-left-out":
    "{count, plural, one {1 picture was} other {{count} pictures were}} not sent to the model: {reason}.",
  "notice.images-left-out.text-model": "this model reads only text",
  "notice.images-left-out.newest": "only the newest {max} are",
  "notice.images-left-out.refused": "this model refused them",
  "notice.images-left-out.gone": "it is no longer kept",
  "notice.images-smaller":
    "{count, plural, one {1 picture was} other {{count} pictures were}} sent to the model smaller: it did not take {count, plural, one {it as it is} other {them as they are}}.",
  "notice.sent-less.length":
    "The model refused the conversation as too long for it, so it was asked with fewer earlier messages.",
  "notice.sent-less.system":
    "The model refused the question as it was, so it was asked in a simpler form, with fewer earlier messages.",
  "notice.other-model":
    "The model `{model}` reads only text, so `{instead}` answered: there are pictures in this conversation.",
  "notice.earlier-answer": "There is no new answer, so this is the earlier one. {why}",
  "notice.ended.length": "The answer reached its length limit and may be unfinished.",
  "notice.ended.filtered": "The provider's content filter cut this answer off.",
  "notice.ended.other": "The model ended this answer for an unknown reason; it may be unfinished.",
} as const;

/** Steps of reading documents and recordings, what was left out, and why something was not read. */
export const fileMessages = {
  "status.reading": "Reading {name}",
  "status.part": "Transcribing part {part}",
  "status.part-of": "Transcribing part {part} of {count}",
  "status.part-again": "Part {part} failed; trying it again",
  "status.part-of-again": "Part {part} of {count} failed; trying it again",
  "document.encrypted": "it is protected by a password; send it without one",
  "document.damaged": "it is damaged or incomplete, or not the kind of file that its name says",
  "document.no-text": "it contains no text, only scans or pictures; send the pages as pictures",
  "document.too-large": "it unpacks to more than Parley reads; send a smaller part of it",
  "document.timeout": "reading it took too long; send a smaller part of it",
  "document.memory": "reading it takes too much memory; send a smaller part of it",
  "document.old-word": "it is in Word’s old format (.doc); save it as .docx",
  "document.old-excel": "it is in Excel’s old format (.xls); save it as .xlsx",
  "document.old-powerpoint": "it is in PowerPoint’s old format (.ppt); save it as .pptx",
  "document.cut.pages": "Only the first {read, number} of {count, number} pages of `{name}` were read.",
  "document.cut.slides": "Only the first {read, number} of {count, number} slides of `{name}` were read.",
  "document.cut.sheets": "Only the first {read, number} of {count, number} sheets of `{name}` were read.",
  "document.blank-page": "Page {page} of `{name}` has no text (a scan or a picture) and was not read.",
  "document.blank-pages":
    "{count, number} pages of `{name}` have no text (scans or pictures) and were not read: {pages}.",
  "document.pictures": "The pictures in `{name}` were not read.",
  "document.pictures.counted": "Not read: {count, plural, one {# picture} other {# pictures}} in `{name}`.",
  "document.rows": "Only the first rows of `{name}` were read.",
  "document.rows.sheets": "Only the first rows of {sheets} in `{name}` were read.",
  "recording.cannot-cut":
    "it is too long to be transcribed whole, and its format cannot be cut; send it as MP3, M4A, Ogg or WAV",
  "recording.left-out": "Only the first {time} of `{name}` were transcribed.",
  "recording.rest-unread": "The rest of `{name}` could not be read and was not transcribed.",
  "recording.gap": "[{from} to {to}: not transcribed]",
  "recording.part-failed": "`{name}` was not transcribed from {from} to {to}: {why}",
  "recording.not-kept": "`{name}` is larger than {max} MB: its words are kept, the recording is not.",
  "transcript.whole-in-file": "(The whole transcript is in `{file}`.)",
  "transcript.of": "Transcript of {name}",
  "transcript.file-failed": "`{file}` could not be shown: {why}",
} as const;
