import { describe, expect, it } from "vitest";
import { toWrittenCall } from "../../../../src/assistant/commands/written-call.ts";

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
