/** The form that corrects the words of a recording. */
export const fixMessages = {
  "transcript.quoted": "Heard: {text}",
  "fix.title": "Fix transcript",
  "fix.introduction": "Write what was said. The question is then answered anew, in the same reply.",
  "fix.introduction.transcript": "Write what was said. It takes the place of the transcript.",
  "fix.description": "What was said in the recording.",
  "fix.placeholder": "The words",
  "fix.submit": "Answer anew",
  "fix.empty": "Write what was said, or cancel.",
  "fix.unchanged": "Nothing was changed, so the answer stays as it is.",
} as const;
