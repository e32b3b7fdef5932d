import type { Access, Actor } from "../../core/access.ts";
import { ParleyError } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { ActionResult, ActionTarget } from "../../core/reply-actions.ts";
import type { Inbox, Redo } from "../../core/inbox.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";
import type { TurnRate } from "../access/turn-rate.ts";
import type { RedoTurn } from "../scheduling/redo-turn.ts";
import { withCorrections, type HeardWords } from "./fix-transcript.ts";
import { askedOf } from "./other-models.ts";
import { storedIn } from "../scheduling/pending-turn.ts";
import { maySteer } from "../scheduling/stop-turn.ts";

export interface AnswerAnewOptions {
  readonly conversations: Pick<Conversations, "recent">;
  readonly inbox: Pick<Inbox, "lookUp" | "listOpenIn">;
  readonly access: Pick<Access, "isAdmin" | "refusalOf">;
  /** The error `over-budget` for an event whose author has spent a budget. */
  readonly overBudget: (event: IncomingEvent, model?: string) => Promise<ParleyError | undefined>;
  /** Whether a model is still listed and allowed. */
  readonly isAvailable: (model: string) => boolean;
  readonly turnRate: TurnRate;
  readonly redo: RedoTurn;
}

/** A stored answer whose button was used. */
interface Answer extends ActionTarget {
  readonly message: StoredMessage;
}

/** Stored messages that are looked at for what was said after an answer. */
const maxLater = 20;

const told = (markdown: string): ActionResult => ({ kind: "told", markdown });

/**
 * Runs the turn of an answer again into the same reply, where that is possible: Regenerate, Continue, and with corrected
 * words. `check`: only whether that is possible, `done` if so.
 */
export function createAnswerAnew(options: AnswerAnewOptions) {
  const { conversations, inbox, access, overBudget, isAvailable, turnRate } = options;

  /** Why the answer cannot be changed now, in words. */
  async function obstacleOf(
    { conversationId, message }: Answer,
    ownKeys: readonly string[],
  ): Promise<string | undefined> {
    const [recent, open] = await Promise.all([
      conversations.recent(conversationId, { maxMessages: maxLater }),
      inbox.listOpenIn(conversationId),
    ]);
    const isOwn = (key: string): boolean => ownKeys.includes(key);
    if (open.some(({ event }) => !isOwn(event.key) && storedIn(event) === conversationId))
      return translate("steer.busy");
    const position = recent.findIndex(({ id }) => id === message.id);
    const later = position === -1 ? [message] : recent.slice(position + 1);
    // What people only were shown (a list of models) is no part of what was said.
    return later.some((one) => one.inContext !== false && !isOwn(one.turnKey)) || position === -1
      ? translate("steer.not-last")
      : undefined;
  }

  async function run(
    wanted: Redo | "check",
    answer: Answer,
    by: Actor,
    fixed: readonly HeardWords[],
  ): Promise<ActionResult> {
    const { turnKey } = answer.message;
    const [entry] = await inbox.lookUp([turnKey]);
    // Only the last turn of a conversation is known for long.
    if (entry === undefined || entry.event.platform !== by.platform)
      return told((await obstacleOf(answer, [turnKey])) ?? translate("steer.too-old"));
    const keys = entry.turn?.keys ?? [turnKey];
    const entries = await inbox.lookUp(keys);
    if (!maySteer(by, entries, access))
      throw new ParleyError("not-permitted", "somebody else's turn", {
        detail: { problem: translate("steer.not-yours") },
      });
    const obstacle = await obstacleOf(answer, keys);
    if (obstacle !== undefined) return told(obstacle);
    // Otherwise the reply would only say so in the place of the answer.
    if (access.refusalOf(entry.event) !== undefined) return told(translate("steer.not-allowed"));
    if (wanted === "check") return { kind: "done" };
    // What it costs is charged to the person who asked.
    const refusal = await overBudget(entry.event, wanted.model);
    if (refusal !== undefined) throw refusal;
    const events = entries.map(({ event }) => event);
    const edited = withCorrections(events, fixed);
    const outcome = await options.redo(turnKey, wanted, { attempts: entry.turn?.attempts ?? 1, edited });
    if (outcome === "accepted") return { kind: "done" };
    return told(outcome === "gone" ? translate("steer.too-old") : translate("steer.under-way"));
  }

  /** Another model would not go on in the same words. */
  function withModel(wanted: Redo, message: StoredMessage): Redo {
    const model = askedOf(message);
    if (wanted.kind !== "continue" || model === undefined || !isAvailable(model)) return wanted;
    return { ...wanted, model };
  }

  return async function answerAnew(
    wanted: Redo | "check",
    answer: Answer,
    by: Actor,
    fixed: readonly HeardWords[] = [],
  ): Promise<ActionResult> {
    const { message, attempt } = answer;
    const redo = wanted === "check" ? wanted : withModel(wanted, message);
    if (attempt !== undefined && attempt !== (message.attempt ?? 1)) return told(translate("steer.outdated"));
    if (redo === "check") return await run(redo, answer, by, fixed);
    if (redo.kind === "continue" && message.isCut !== true) return told(translate("steer.complete"));
    const counted = await turnRate.count(by.author.id);
    if (counted.refusal !== undefined) throw counted.refusal;
    let result: ActionResult | undefined;
    try {
      result = await run(redo, answer, by, fixed);
      return result;
    } finally {
      if (result?.kind !== "done") await counted.undo();
    }
  };
}
