import { describe, expect, it } from "vitest";
import { loadPageModule } from "./page-module.ts";

interface Page {
  readonly chat: string;
  readonly addressed: string;
  readonly maxMessages: number;
  readonly wantedItem: string;
  readonly drawer: string;
  readonly problem: unknown;
  readonly prefill: unknown;
}

const { newPage, pageAfter } = await loadPageModule<{
  readonly newPage: (at: { readonly chat: string; readonly isAddressed: boolean }) => Page;
  readonly pageAfter: (page: Page, action: { readonly kind: string } & Record<string, unknown>) => Page;
}>("page-state");

const first = newPage({ chat: "a", isAddressed: true });
const problem = { message: "Offline.", isOffline: true };
const used = [
  { kind: "loaded", maxMessages: 300 },
  { kind: "prefilled", prefill: { text: "/models", nonce: 1 } },
  { kind: "failed", problem },
  { kind: "drawer", drawer: "open" },
].reduce(pageAfter, first);

describe("the state of the page", () => {
  it("leaves behind what belongs to a chat when another one is opened, and closes the list", () => {
    const next = pageAfter(used, { kind: "opened", chat: "b", item: "turn#1" });
    expect(next).toEqual({ ...first, chat: "b", wantedItem: "turn#1" });
  });

  it("keeps it where the same chat is opened, to show a message", () => {
    const next = pageAfter(used, { kind: "opened", chat: "a", item: "turn#1" });
    expect(next).toEqual({ ...used, drawer: "closed", wantedItem: "turn#1" });
    expect(pageAfter(next, { kind: "found" }).wantedItem).toBe("");
  });

  it("knows the chat of the address as one that may not exist until something is sent", () => {
    expect(pageAfter(used, { kind: "opened", chat: "b" }).addressed).toBe("a");
    expect(pageAfter(used, { kind: "sent" }).addressed).toBe("");
  });

  it("drops a lost connection when it is back, but not that a message of another chat was not sent", () => {
    expect(pageAfter(used, { kind: "reconnected" }).problem).toBeUndefined();
    const other = { kind: "failed", problem: { ...problem, chat: "Plans" } };
    const back = pageAfter(pageAfter(used, other), { kind: "reconnected" }).problem;
    expect(back).toMatchObject({ chat: "Plans", isOffline: false });
    const refused = { message: "No such command.", isOffline: false };
    const kept = pageAfter(pageAfter(used, { kind: "failed", problem: refused }), { kind: "reconnected" });
    expect(kept.problem).toBe(refused);
  });
});
