import { toNotice } from "../../core/error-messages.ts";
import { ParleyError } from "../../core/errors.ts";
import { storedIn, type IncomingEvent } from "../../core/events.ts";
import type { Begun, InboxRecord } from "../../core/inbox.ts";
import type { Platform } from "../../core/platform.ts";
import { inLanguage } from "../../words/translate.ts";
import { toLanguage } from "../../words/languages.ts";
import { toPlainQuestions } from "../turn/read-messages.ts";
import { markPeoplesThread } from "../turn/stored-messages.ts";
import { isOutage } from "../turn/turn.ts";
import { accessDenied, type Asked, type AttemptOptions } from "./attempt.ts";
import type { Task } from "./decide-next.ts";

/** Begins attempts, and refuses who must not ask any more. */
export function createBegin({ inbox, platforms, log, dependencies }: AttemptOptions) {
  const { access, conversations } = dependencies;
  /** What was read and stored with attempts that have begun here, until they run. */
  const asked = new WeakMap<Begun, Asked>();
  const isAllowed = (event: IncomingEvent): boolean => access.refusalOf(event) === undefined;

  async function begin(task: Task): Promise<Begun | undefined> {
    const [first] = task.batch as readonly [InboxRecord];
    const platform = platforms.get(first.event.platform);
    if (platform === undefined) throw new ParleyError("stopping", "the platform of an open turn is off");
    const batch = first.turn === undefined ? await withoutRefused(task.batch, platform) : task.batch;
    if (batch.length === 0) return undefined;
    const conversationId = storedIn(first.event);
    if (first.event.inRoom === true && conversationId === first.event.conversationId)
      await markPeoplesThread(conversations, conversationId);
    const settings = await conversations.settings(conversationId);
    const messages = batch.flatMap(({ event }) => (event.kind === "message" ? [event] : []));
    const isNew = task.kind === "run" && first.turn === undefined && messages.length > 0;
    const questions = isNew ? toPlainQuestions(messages, settings) : undefined;
    const begun = await inbox.begin(
      batch,
      questions === undefined ? undefined : { messages: questions, noted: { within: messages[0]?.within } },
    );
    if (begun !== undefined) asked.set(begun, { settings, questions: questions ?? [] });
    return begun;
  }

  /** Refuses waiting events whose authors the rules do not allow any more, unseen by others. */
  async function withoutRefused(
    batch: readonly InboxRecord[],
    platform: Platform,
  ): Promise<readonly InboxRecord[]> {
    const refused = batch.filter(({ event }) => !isAllowed(event));
    for (const { event } of refused) {
      log.info({ turn: event.key }, "turn refused by the access rules");
      await tellRefused(event, platform);
      await inbox.change({ kind: "delete", of: event.key });
    }
    return batch.filter((one) => !refused.includes(one));
  }

  async function tellRefused({ author, address, key }: IncomingEvent, platform: Platform): Promise<void> {
    const alone = platform.toPrivateAddress(address);
    if (alone === undefined) return;
    const language = toLanguage(author.locale);
    try {
      const reply = platform.openReply(alone, { saveAddress: () => Promise.resolve() });
      await reply.show();
      const text = inLanguage(language, () => toNotice(accessDenied()));
      await reply.fail({ text });
    } catch (error) {
      if (isOutage(error)) throw error;
      log.warn({ turn: key, err: error }, "a refusal is not shown");
    }
  }

  return {
    begin,
    tellRefused,
    askedWith: (begun: Begun): Asked => asked.get(begun) ?? { settings: {}, questions: [] },
  };
}
