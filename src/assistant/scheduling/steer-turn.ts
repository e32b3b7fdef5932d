import type { Access, Actor } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import type { AgainReason, Change, ChangeOutcome, Changed, Inbox, InboxRecord } from "../../core/inbox.ts";
import type { PressResult } from "../../core/press.ts";
import { translate } from "../../words/translate.ts";
import type { TurnRate } from "../access/admission.ts";
import type { TurnLoop } from "./turn-loop.ts";

interface SteeringOptions {
  readonly inbox: Pick<Inbox, "change" | "openIn" | "read">;
  readonly loop: Pick<TurnLoop, "isStopping" | "kick" | "noticed" | "runningIn">;
  readonly access: Pick<Access, "isAdmin">;
  readonly turnRate: TurnRate;
  readonly clock: Pick<Clock, "now">;
}

/** Stops a turn, or runs an ended one again into the same reply. A turn's key is that of its first event. */
export interface Steering {
  /**
   * Stops a turn in any process. `key` is that of one of its events, or the conversation in which it runs.
   * When it resolves, no process runs the turn again, and this is durable.
   * @throws ParleyError `not-permitted`, `store-unavailable`
   */
  stop(key: string, by: Actor): Promise<PressResult>;
  /** Retries a failed turn for anybody. @throws ParleyError `rate-limited`, `stopping` `store-unavailable` */
  retry(key: string, by: Actor): Promise<PressResult>;
  /** Runs a command as confirmed, for its caller. @throws ParleyError `stopping`, `store-unavailable` */
  confirm(key: string, by: Actor): Promise<PressResult>;
  /**
   * Runs an answered turn again. The new answer replaces the stored one. It runs here or after a restart once
   * this resolves.
   * @throws ParleyError `store-unavailable`, `stopping`
   */
  again(key: string, reason: AgainReason, how?: HowAgain): Promise<Changed>;
}

type HowAgain = Pick<Extract<Change, { kind: "again" }>, "attempt" | "model" | "toQuestion">;

/** Whether somebody may control the turn of these events, as one of its askers or as a moderator. */
export function maySteer(
  by: Actor,
  records: readonly Pick<InboxRecord, "event">[],
  access: Pick<Access, "isAdmin">,
): boolean {
  const isAsker = records.some(({ event }) => event.author.id === by.author.id);
  return isAsker || by.origin?.isManager === true || access.isAdmin(by);
}

/**
 * Makes a change and lets the loop do what follows from it, also where it is not known whether the change was
 * stored.
 */
export async function changeAndKick(
  {
    inbox,
    loop,
  }: { readonly inbox: Pick<Inbox, "change" | "read">; readonly loop: Pick<TurnLoop, "kick" | "noticed"> },
  record: InboxRecord | undefined,
  change: Change,
): Promise<ChangeOutcome> {
  const turnKey = record?.in ?? change.of;
  let outcome: ChangeOutcome | undefined;
  try {
    outcome = await inbox.change(change);
    return outcome;
  } finally {
    loop.noticed(turnKey, outcome?.turn);
    if (record !== undefined && record.state !== "erased") loop.kick(record.event);
  }
}

export function createSteering(options: SteeringOptions): Steering {
  const { access, clock, inbox, loop, turnRate } = options;

  async function again(key: string, reason: AgainReason, how: HowAgain = {}): Promise<Changed> {
    if (loop.isStopping()) throw new ParleyError("stopping", "the process is stopping");
    const [record] = await inbox.read([key]);
    const isLastOnly = reason !== "retry" && reason !== "confirm";
    const change: Change = { kind: "again", of: key, reason, isLastOnly, ...how };
    const { result } = await changeAndKick(options, record, change);
    return result;
  }

  const toPressed = (changed: Changed): PressResult =>
    changed === "gone" ? { kind: "gone" } : { kind: "done" };

  /** The key of the turn that runs or waits in a conversation, if the key is that of a conversation. */
  async function turnOf(key: string): Promise<string> {
    const running = loop.runningIn(key);
    if (running !== undefined) return running;
    const open = await inbox.openIn(key);
    return open.find(({ turn }) => turn !== undefined)?.event.key ?? key;
  }

  return {
    async stop(given, by) {
      const key = await turnOf(given);
      const [own] = await inbox.read([key]);
      const ended = { kind: "told", markdown: translate("steer.ended") } as const;
      if (own === undefined || own.state === "erased" || own.event.platform !== by.platform) return ended;
      const [turn] = own.in === undefined ? [own] : await inbox.read([own.in]);
      const askers = await inbox.read(turn?.turn?.keys ?? [key]);
      if (!maySteer(by, askers, access))
        throw new ParleyError("not-permitted", "somebody else's turn", {
          detail: { problem: translate("steer.not-yours-to-stop") },
        });
      // The operator's own page has one person, who needs no name.
      const name = by.origin === undefined ? "" : by.author.name;
      const change = { kind: "stop", of: key, by: name, at: clock.now() } as const;
      const { result } = await changeAndKick(options, own, change);
      return result === "done" ? { kind: "done" } : ended;
    },
    async retry(key, by) {
      const counted = await turnRate.count(by.author.id);
      if (counted.refusal !== undefined) throw counted.refusal;
      let result: PressResult | undefined;
      try {
        result = toPressed(await again(key, "retry"));
      } finally {
        if (result?.kind !== "done") await counted.undo();
      }
      return result;
    },
    async confirm(key, by) {
      const [record] = await inbox.read([key]);
      if (record?.event.kind !== "call") return { kind: "gone" };
      if (record.event.author.id !== by.author.id)
        return { kind: "told", markdown: translate("press.only-asker") };
      return toPressed(await again(key, "confirm"));
    },
    again,
  };
}
