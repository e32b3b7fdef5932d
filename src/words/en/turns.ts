/** What an answer says about itself, such as steps, endings, notices and its receipt. */
export const turnMessages = {
  "status.thinking": "Thinking it through",
  "status.summing-up": "Summing up earlier messages",
  "status.gateway-busy": "The gateway is busy; trying again in {count} s",
  "status.asking-again": "Asking again",
  "status.listening": "Listening to {name}",
  "status.drawing": "Drawing",
  "status.changing-picture": "Changing the picture",
  "branch.title": "{title} (branch)",
  "branch.file-gone": "it is no longer stored",
  "status.collecting": "Collecting the conversation",

  "turn.nothing-readable": "There was nothing in it that Parley can read.",
  "room.withheld": "You may not read what was said here before, so I leave it out too.",
  "room.forbidden": "What was said here before could not be read: I lack {permission}. Ask your admin.",
  "room.forbidden.part":
    "Part of what was said here before could not be read: I lack {permission}. Ask your admin.",
  "room.unreadable": "I cannot read what is said here without me; I know only what was said to me.",
  "room.failed": "What was said here before could not be read. {why}",
  "room.late": "What was said here before could not be read in time; this answer does without it.",
  "room.late.part":
    "Only the first {count, plural, one {# message} other {# messages}} of what was said here before could be read in time.",
  "room.cut":
    "Of what was said here before, {count, plural, one {only the last message was} other {the last # messages were}} read; earlier ones were left out.",
  "room.files": "Not read from what was said here before: {names}.",
  "room.files.more": "Not read from what was said here before: {names} and {count, number} more.",
  "file.room-newest": "only the newest {max} files of a thread are read",
  "file.late": "it could not be read in time",
  "file.too-many": "only {max} files are read at once",
  "file.empty": "the file is empty",
  "file.other-type":
    "{type} is not something Parley reads; send pictures, audio, text, PDF or office documents",
  "file.no-words": "no words can be heard in it",
  "file.no-transcription": "no model of the gateway can transcribe",
  "file.not-picture": "it is not a picture",
  "file.not-recording": "it is not a recording",
  "file.text-cut": "Only the first {max} characters of `{name}` were read.",
  "picture.first-frame": "Only the first frame of the picture is read (it has {count}).",
  "picture.first-page": "Only the first page of the picture is read (it has {count}).",

  "model.set-not-taken": "{why} It is in {whose}, so `{taken}` was used.",
  "model.set-not-taken.own": "your settings",
  "model.set-not-taken.place": "the settings of {place}",
  "model.fallback": "Model `{model}` did not answer; `{instead}` did.",

  "answer.far-too-long": "The answer went far beyond the {max} tokens asked for, and is cut.",
  "answer.all-thought": "The model used all its tokens for thinking and had none left for the answer.",
  "answer.all-thought.counted":
    "The model used its {used, number} tokens for thinking and had none left for the answer.",
  "lost-picture.too-large": "A picture in the answer was too large and is left out.",
  "lost-picture.blocked":
    "A picture in the answer is linked from an address that must not be opened, and is left out.",
  "lost-picture.unreadable": "A picture in the answer was in no format that can be shown, and is left out.",
  "lost-picture.unloaded": "A picture in the answer could not be loaded and is left out.",
  "lost-picture.incomplete": "A picture in the answer arrived incomplete and is left out.",
  "lost-picture.on-disk":
    "A picture in the answer is on the disk of the model server, which only it can read, and is left out.",
  "lost-picture.from": "A picture could not be fetched from {host}: {reason}.",
  "lost-picture.because.blocked": "it is opened only if IMAGE_HOSTS lists it",
  "lost-picture.because.too-large": "it is too large",
  "lost-picture.because.status": "the answer was {status}",
  "lost-picture.because.unreached": "it could not be reached in time",
  "lost-picture.because.unreadable": "what came is no picture that can be shown",

  "drawn.as": "Drawn as: {prompt}",
  "drawn.fewer": "Only {count} of {wanted} pictures arrived.",
  "drawn.other-model": "The model `{usual}` cannot change pictures, so `{taken}` did.",
  "drawn.one-at-a-time": "One picture at a time is changed.",
  "drawn.size-kept": "A changed picture keeps the size that the model gives it.",
  "drawn.only-words": "The model answered in words, without a picture.",
  "transcript.empty": "(no words)",

  "details.title": "How this answer came about",
  "details.model.chat": "Model: {model}",
  "details.model.image": "Drawn by: {model}",
  "details.model.transcription": "Transcribed by: {model}",
  "details.asked": "asked for {model}",
  "details.fallback": "it did not answer, so this is the fallback",
  "details.incomplete": "its answer did not arrive completely",
  "details.usage": "Usage: {amounts}",
  "details.usage.none": "not reported",
  "details.usage.prompt": "{count, plural, one {# token} other {# tokens}} in the prompt",
  "details.usage.answer": "{count, number} in the answer",
  "details.usage.pictures": "{count, plural, one {# picture} other {# pictures}}",
  "details.usage.audio": "{minutes} min of audio",
  "details.cost": "Cost: {cost}",
  "details.cost.unknown": "unknown: the model has no price",
  "details.cost.assumed": "{cost} (estimated: the model has no price, so a high one counts)",
  "details.estimated": "(estimated)",
  "details.before":
    "Before it: {count, plural, one {# recording} other {# recordings}} transcribed by {models}",
  "details.before.length":
    "Before it: {count, plural, one {# recording} other {# recordings}} transcribed by {models}, {minutes} min",
  "details.continued": "Continued: {count, plural, one {# earlier part} other {# earlier parts}} by {models}",
  "details.total": "Cost in all: {cost}",
  "details.total.unpriced":
    "Cost in all: {cost}, without {count, plural, one {# call} other {# calls}} of unknown price",
  "details.time": "Time: {time}",
  "details.time.first": "first words after {first}, {all} in all",
  "details.context":
    "Context: {messages, plural, one {# message} other {# messages}}, about {tokens, plural, one {# token} other {# tokens}}; {left}",
  "details.context.all": "nothing left out",
  "details.context.older": "older ones left out",
  "details.context.left": "{count, number} earlier left out",
  "details.context.summed-up": "{count, number} earlier summed up",
  "details.context.summed-up-left": "{count, number} earlier summed up, others left out",
  "details.summing-up": "Summed up for it by {models}: {cost}",
  "details.summary":
    "Summary of {count, plural, one {# earlier message} other {# earlier messages}}, as it is now:",
  "details.summary.cost":
    "Summary of {count, plural, one {# earlier message} other {# earlier messages}}, as it is now ({cost} so far):",
  "details.pictures": "Pictures: {sent, number} sent",
  "details.pictures.left": "Pictures: {sent, number} sent, {left, number} left out",
  "details.files": "Files: {counts}",
  "details.files.named": "Files: {counts}: {names}",
  "details.files.read": "{read, number} read",
  "details.files.unread": "{read, number} read, {unread, number} not read",
  "details.file.unread": "{name} **not read** ({reason})",
  "details.more": "{count, number} more",
  "details.settings": "Settings: {settings}",
  "details.temperature": "temperature {temperature}",
  "details.max-tokens": "at most {count, plural, one {# token} other {# tokens}} an answer",
  "details.gone": "This answer is no longer stored.",

  "steer.ended": "This answer has ended already.",
  "steer.not-last":
    "The conversation has gone on since this answer. Only the last answer of a conversation can be changed.",
  "steer.outdated": "This button belongs to an earlier attempt: there is another answer by now.",
  "steer.under-way": "A new answer is already on its way.",
  "steer.complete": "This answer is complete.",
  "steer.too-old": "This answer is too old for that. Please ask again.",
  "steer.not-allowed": "The person who asked may no longer use Parley here.",
  "steer.not-yours": "Only the person who asked, or a moderator, can do this.",
  "steer.not-yours-to-stop": "Only the person who asked, or a moderator, can stop this.",

  "time.under": "under {seconds} s",
} as const;

/** The form that corrects the words of a recording. */
export const fixMessages = {
  "transcript.quoted": "Heard: {text}",
  "fix.title": "Fix transcript",
  "fix.introduction": "Write what was said. Parley then answers the question again, in the same place.",
  "fix.introduction.transcript": "Write what was said. It takes the place of the transcript.",
  "fix.description": "What was said in the recording.",
  "fix.placeholder": "The words",
  "fix.submit": "Get a new answer",
  "fix.empty": "Write what was said, or cancel.",
  "fix.unchanged": "Nothing was changed, so the answer stays as it is.",
} as const;

/** The form that makes another model answer. */
export const otherModelMessages = {
  "other-model.title": "Another model",
  "other-model.introduction": "The model that you choose answers the question again, in the same place.",
  "other-model.field": "Model",
  "other-model.description": "This answer is by {model}.",
  "other-model.placeholder": "A model's name, or a part of it",
  "other-model.submit": "Get a new answer",
  "other-model.none": "There is no other model that could answer this.",
  "other-model.missing": "Choose a model, or cancel.",
  "other-model.several": "Several models have that in their names: {models}. Write one of them.",
  "other-model.unfit.pictures":
    "{model} does not take pictures, and there are some here. Choose another model.",
  "other-model.unfit.chat": "{model} does not answer questions. Choose another model.",
  "other-model.unfit.same": "This answer is already by {model}. Use Regenerate for another one from it.",
} as const;

/** Pictures of answers: which one was used, and the form that changes one. */
export const pictureMessages = {
  "picture.one": "the picture “{prompt}” ({at} UTC)",
  "picture.several": "picture {number} of {count} “{prompt}” ({at} UTC)",
  "picture.changed-from": "Changed from {picture}.",
  "picture.last-shown": "The last picture that the model was shown is {picture}.",
  "picture.missing":
    "{count, plural, one {{count} picture is no longer kept.} other {{count} pictures are no longer kept.}}",
  "picture.not-shown": "The pictures could not be shown here. {why}",
  "picture.any": "The picture",

  "change.title": "Change a picture",
  "change.introduction": "The changed picture comes as a new answer. This one stays.",
  "change.what": "What should change?",
  "change.what.hint": "In words, such as: make it blue.",
  "change.what.example": "make it blue",
  "change.what.missing": "Say what should change.",
  "change.which": "Which picture?",
  "change.which.hint": "In the order in which they are shown.",
  "change.which.option": "Picture {number} of {count}",
  "change.which.missing": "Choose one of the {count} pictures.",
  "change.submit": "Change",
} as const;
