import type { ItemView } from "../../../../src/platforms/web/views.ts";

/** Makes a finished item. Its role follows from the end of its id. */
export function pageItem(id: string, more: Partial<ItemView> = {}): ItemView {
  return {
    id,
    role: id.endsWith("user") ? "user" : "assistant",
    state: "finished",
    createdAt: 1,
    order: more.createdAt ?? 1,
    text: "",
    files: [],
    notices: [],
    ...more,
  };
}
