import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseCommandLine } from "../../src/core/command.ts";
import { resolveInput } from "../../src/core/command-input.ts";
import { actionLabel, goneNotice, toNotice } from "../../src/core/error-messages.ts";
import type { IncomingEvent, IncomingMessage } from "../../src/core/events.ts";
import type { Receiver } from "../../src/core/receiver.ts";
import type { Press, PressKind, PressResult } from "../../src/core/press.ts";
import { unknownCommand } from "../../src/support/text.ts";
import { unlessMissing } from "../../src/support/unless-missing.ts";
import { translate } from "../../src/words/translate.ts";
import type { MessageContent } from "../../src/platforms/delivery/message-plan.ts";
import { person, tell } from "./folder-messages.ts";
import type { FolderOptions } from "./folder-platform.ts";

interface FolderButton extends Pick<Press, "kind" | "key"> {
  readonly label: string;
}

/** These open forms. */
const withForm: ReadonlySet<PressKind> = new Set(["model", "change", "transcript"]);

/** Keeps the buttons of a message beside it, and returns the line that shows them. */
export async function saveButtons(file: string, content: MessageContent): Promise<string> {
  const { retryKey, confirm, actions = [] } = content;
  const buttons: FolderButton[] = [
    ...(retryKey === undefined
      ? []
      : [{ label: translate("button.retry"), kind: "retry" as const, key: retryKey }]),
    ...(confirm === undefined ? [] : [{ ...confirm, kind: "confirm" as const }]),
    ...actions
      .filter(({ kind }) => !withForm.has(kind))
      .map(({ kind, key }) => ({ label: actionLabel(kind), kind, key })),
  ];
  await writeFile(`${file}.buttons`, JSON.stringify(buttons));
  return buttons.map(({ label }) => `[${label}]`).join(" ");
}

/** Passes on what people pressed in a folder of `in`, and tells them what comes of it. */
export async function receivePresses(folder: string, place: string, receiver: Receiver): Promise<void> {
  const files = await readdir(path.join(folder, "in", place));
  for (const file of files.filter((one) => one.endsWith(".press"))) {
    const at = path.join(folder, "in", place, file);
    const [, message = "", label] = /^([\w.-]+) (.+)$/.exec((await readFile(at, "utf8")).trim()) ?? [];
    const saved = await unlessMissing(
      readFile(path.join(folder, "talk", place, `${message}.buttons`), "utf8"),
    );
    const buttons = JSON.parse(saved ?? "[]") as readonly FolderButton[];
    const button = buttons.find((one) => one.label === label);
    const address = { place, name: path.basename(file, ".press") };
    const words = await press(receiver, button, address).catch((error: unknown) => toNotice(error));
    if (words !== undefined) await tell(folder, address, words);
    await rm(at);
  }
}

async function press(
  receiver: Receiver,
  button: FolderButton | undefined,
  address: { readonly place: string; readonly name: string },
): Promise<string | undefined> {
  if (button === undefined) return goneNotice();
  const { kind, key } = button;
  const result: PressResult = await receiver.press({ kind, key }, { platform: "folder", author: person });
  if (result.kind === "told") return result.markdown;
  if (result.kind === "gone") return goneNotice(kind);
  if (result.kind !== "call") return undefined;
  const { written: _, conversationId, ...call } = result.call;
  const eventKey = `folder:${address.place}/${address.name}.press`;
  await receiver.receive({
    kind: "call",
    key: eventKey,
    platform: "folder",
    conversationId: conversationId ?? eventKey,
    author: person,
    sentAt: Date.now(),
    address,
    ...call,
    inConversation: conversationId !== undefined,
    isPrivate: false,
  });
  return undefined;
}

/** @throws ParleyError `unknown-command`, `invalid-option` */
export function toEvent(commands: FolderOptions["commands"], message: IncomingMessage): IncomingEvent {
  const line = parseCommandLine(message.text);
  if (line === undefined) return message;
  const command = commands.get(line.name);
  if (command === undefined) throw unknownCommand(line.name, commands.keys());
  const { kind: _, text: _text, attachments: files, ...base } = message;
  const resolved = resolveInput(command, { text: line.text, files }, { isPersonal: true });
  return { ...base, kind: "call", name: line.name, ...resolved, inConversation: true, isInputVisible: true };
}
