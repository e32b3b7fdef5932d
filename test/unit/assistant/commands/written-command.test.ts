import { describe, expect, it } from "vitest";
import { toCallIfWritten } from "../../../../src/assistant/commands/written-command.ts";
import { commandSet, message } from "../../../support/fakes.ts";

const voice = { id: "v", name: "v.ogg", mediaType: "audio/ogg", source: null };

describe("toCallIfWritten", () => {
  it("makes a call of a message that is written as a command", () => {
    const event = message("/imagine a red fox count:2");
    expect(toCallIfWritten(event, commandSet)).toEqual({
      kind: "call",
      key: event.key,
      platform: "fake",
      conversationId: event.conversationId,
      author: event.author,
      sentAt: event.sentAt,
      address: event.address,
      name: "imagine",
      options: { prompt: "a red fox", count: "2" },
      inConversation: true,
      isPrivate: false,
      isInputVisible: true,
    });
  });

  it("fills file options from the message's files", () => {
    const call = toCallIfWritten(message("/transcribe language:en", { attachments: [voice] }), commandSet);
    expect(call).toMatchObject({ name: "transcribe", options: { file: voice, language: "en" } });
  });

  it.each(["hello", "/nosuch thing", "what does /imagine do?", "/ imagine x", "//imagine x"])(
    "leaves %j a message",
    (text) => {
      const event = message(text);
      expect(toCallIfWritten(event, commandSet)).toBe(event);
    },
  );
});
