import { describe, expect, it } from "vitest";
import { toWrittenCall } from "../../../../src/core/command-input.ts";
import { toCallIfWritten } from "../../../../src/assistant/commands/run-command.ts";
import { allCommands } from "../../../support/commands.ts";
import { message } from "../../../support/fakes.ts";

const platform = { toPrivateAddress: () => undefined };
const voice = { id: "v", name: "v.ogg", mediaType: "audio/ogg", source: null };

describe("toCallIfWritten", () => {
  it("makes a call of a message that is written as a command", () => {
    const event = message("/imagine a red fox count:2");
    expect(toCallIfWritten(event, allCommands, platform)).toEqual({
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
    const call = toCallIfWritten(
      message("/transcribe language:en", { attachments: [voice] }),
      allCommands,
      platform,
    );
    expect(call).toMatchObject({ name: "transcribe", options: { file: voice, language: "en" } });
  });

  it.each(["hello", "/nosuch thing", "what does /imagine do?", "/ imagine x", "//imagine x"])(
    "leaves %j a message",
    (text) => {
      const event = message(text);
      expect(toCallIfWritten(event, allCommands, platform)).toBe(event);
    },
  );

  it("answers privately what only the author may see", () => {
    const address = { only: "ada" };
    const call = toCallIfWritten(message("/export"), allCommands, { toPrivateAddress: () => address });
    expect(call).toMatchObject({ name: "export", isPrivate: true, address });
  });

  it("says how to use a private command where the platform cannot answer privately", () => {
    expect(toCallIfWritten(message("/export"), allCommands, platform)).toMatchObject({
      isPrivate: false,
      problem: { detail: { problem: "only you may see its answer: use it as a slash command" } },
    });
  });

  it("says what is wrong with a command that cannot be run", () => {
    expect(toCallIfWritten(message("/imagine"), allCommands, platform)).toMatchObject({
      name: "imagine",
      problem: { written: "/imagine", detail: { option: "prompt", problem: "this is missing" } },
    });
    expect(
      toCallIfWritten(message("/imagine a fox", { attachments: [voice] }), allCommands, platform),
    ).toMatchObject({ problem: { detail: { option: "v.ogg" } } });
  });

  it("knows a command in capitals", () => {
    expect(toCallIfWritten(message("/ASK why?"), allCommands, platform)).toMatchObject({ name: "ask" });
  });
});

describe("toWrittenCall", () => {
  it("writes a call as people do", () => {
    const options = { model: undefined, size: "1024x1024", count: 2, private: true };
    expect(toWrittenCall("imagine", "a red fox", options)).toBe(
      "/imagine a red fox size:1024x1024 count:2 private:yes",
    );
  });

  it("quotes values with spaces", () => {
    expect(toWrittenCall("transcribe", undefined, { hint: "Parley, Juniper" })).toBe(
      '/transcribe hint:"Parley, Juniper"',
    );
  });

  it("is the name alone where nothing was given", () => {
    expect(toWrittenCall("models", "")).toBe("/models");
  });
});
