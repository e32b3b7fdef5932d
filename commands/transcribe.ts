import { defineCommand, modelOption } from "../src/core/command.ts";

export default defineCommand({
  name: "transcribe",
  description: "Turn a voice note or recording into text",
  options: {
    file: { kind: "attachment", accepts: "audio", description: "The recording", required: true },
    language: { kind: "string", description: "Its language, as a code such as en or de", maxChars: 16 },
    hint: { kind: "string", description: "Names and terms that occur in it", maxChars: 1000 },
    model: modelOption("transcription"),
  },
  visibility: "public",
  spends: "transcription",
  messageCommand: { label: "Transcribe", fills: { file: "file" } },
  examples: ['/transcribe language:en hint:"Parley, Juniper"'],
  run: ({ options, services }) => services.transcribe(options),
});
