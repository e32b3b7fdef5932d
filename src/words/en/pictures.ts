/** Pictures of answers: which one was taken, and the form that changes one. */
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
