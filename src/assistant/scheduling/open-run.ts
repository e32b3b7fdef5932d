import { storedIn, type ReplyAddress } from "../../core/events.ts";
import type { Begun } from "../../core/inbox.ts";
import type { Platform } from "../../core/platform.ts";
import type { Reply, ReplyHooks } from "../../core/reply.ts";
import { toStopAction } from "../../core/press.ts";
import { currentTurn, noSpan } from "../../core/telemetry.ts";
import { currentLanguage, inLanguage } from "../../words/translate.ts";
import { createTracedReply } from "../turn/stream-answer.ts";
import { throwIfAbandoned } from "../turn/turn.ts";
import { type ActiveTurn, toOvertaken } from "./active-turn.ts";
import { type Asked, type AttemptOptions, type OpenedRun, toAttempt } from "./attempt.ts";

/** Returns a function that opens the reply of an attempt, with all that the attempt knows and may write. */
export function createOpenRun(options: AttemptOptions, askedWith: (begun: Begun) => Asked) {
  const { inbox, log } = options;

  return async function open(begun: Begun, active: ActiveTurn, platform: Platform): Promise<OpenedRun> {
    const { record, events } = begun;
    const { turn, event } = record;
    const conversationId = storedIn(event);
    const { settings, questions } = askedWith(begun);
    const turnSettings = await options.settings.forTurn(events[0] ?? event, settings);
    const language = turnSettings.language ?? currentLanguage();
    const attempt = toAttempt(begun);
    let shownAt: ReplyAddress = turn.address;
    const isResumed = turn.attempt > 1;
    if (isResumed) log.info({ platform: platform.id, attempt: turn.attempt }, "turn resumed");
    const hooks: ReplyHooks = {
      async saveAddress(address, { isDurable = false } = {}) {
        throwIfAbandoned(active.signal);
        shownAt = address;
        const shownAs = platform.shownMessageKeys(address);
        const written = await inbox.write(attempt, { kind: "address", address, shownAs, isDurable });
        if (!written.isWritten) active.abandon(toOvertaken());
        // The lease may have been lost while the address was saved.
        throwIfAbandoned(active.signal);
      },
      turn: { key: event.key, attempt: turn.attempt, sentAt: (events.at(-1) ?? event).sentAt },
      isResumed,
      isFresh: active.isFresh,
      isCalm: turnSettings.isCalm,
      ...(turn.end?.kind === "withdrawn" || turn.end?.isStored === true ? { isEndOnly: true } : {}),
      stop: toStopAction(event.key),
    };
    const reply = shownOnce(
      createTracedReply(
        inLanguage(language, () => platform.openReply(turn.address, hooks)),
        options.tracer,
        currentTurn()?.span ?? noSpan,
      ),
    );
    active.reply = reply;
    return {
      key: event.key,
      attempt: turn.attempt,
      again: turn.again,
      platform,
      conversationId,
      settings,
      reply,
      signal: active.signal,
      questions: new Map(questions.map((question) => [question.turnKey, question])),
      shownMessageKeys: () => platform.shownMessageKeys(shownAt),
      async ask(messages, noted) {
        const written = await inbox.write(attempt, {
          kind: "asked",
          messages,
          ...(noted === undefined ? {} : { noted }),
        });
        if (!written.isWritten) active.notice(written.record);
        active.signal.throwIfAborted();
      },
      events,
      begun,
      active,
      language,
      turnSettings,
    };
  };
}

/** A reply whose first sign is shown once, however often it is asked for. */
function shownOnce(reply: Reply): Reply {
  let shown: Promise<void> | undefined;
  return { ...reply, show: () => (shown ??= reply.show()) };
}
