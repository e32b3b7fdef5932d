import { toNotice } from "../../core/error-messages.ts";
import { codeOf, isParleyError, ParleyError } from "../../core/errors.ts";
import type { Begun } from "../../core/inbox.ts";
import { createRareLog } from "../../core/telemetry.ts";
import { inLanguage } from "../../words/translate.ts";
import { isOutage } from "../turn/turn.ts";
import { type AttemptOptions, type OpenedRun, toAttempt } from "./attempt.ts";

/** What happens to an attempt whose result could not be shown or stored. */
export function createLeaving({ inbox, log, dependencies }: AttemptOptions) {
  const { clock } = dependencies;
  const warnRarely = createRareLog(log, () => clock.monotonic());

  /** Leaves an attempt for later after an outage. Anything else has ended it for good. */
  async function endFailed(run: OpenedRun, error: unknown): Promise<"failed" | "left-open"> {
    const { active, begun, platform } = run;
    const attempt = toAttempt(begun);
    if (!isOutage(error)) {
      log.error({ platform: platform.id, err: error }, "the end of a turn is not shown");
      // Nothing else would end this reply, because the turn is over.
      const isShown = await failVisibly(run, error);
      if (!isShown && isParleyError(error, "platform-forbidden")) await tellAlone(run, error);
      active.abandon(new ParleyError("stopping", "the turn has ended", { cause: error }));
      await inbox.write(attempt, { kind: "close", isRepeatable: true });
      return "failed";
    }
    // Each open turn meets an outage again and again until it is over.
    warnRarely(codeOf(error), { platform: platform.id, err: error }, "turn left open");
    active.abandon(new ParleyError("stopping", "the turn is left open", { cause: error }));
    await giveBack(begun);
    return "left-open";
  }

  /** An outage that was noticed is no try: tries are for what may end the process. */
  async function giveBack(begun: Begun): Promise<void> {
    await inbox.write(toAttempt(begun), { kind: "give-back" }).catch((failure: unknown) => {
      log.debug({ err: failure }, "an attempt is not given back");
    });
  }

  /** Resolves to whether the reply shows the failure, or has ended before. */
  async function failVisibly({ key, language, reply }: OpenedRun, error: unknown): Promise<boolean> {
    try {
      await reply.fail({ text: inLanguage(language, () => toNotice(error)), retryKey: key });
      return true;
    } catch (failure) {
      log.info({ err: failure }, "the failure of a turn is not shown");
      return false;
    }
  }

  /** Says why there is no answer to the person who sees nothing of it in the place where they asked. */
  async function tellAlone({ events, platform, language }: OpenedRun, error: ParleyError): Promise<void> {
    const [first] = events;
    if (first === undefined) return;
    try {
      await platform.tellAlone(
        first.address,
        first.author.id,
        inLanguage(language, () => toNotice(error)),
      );
    } catch (failure) {
      log.info({ platform: platform.id, err: failure }, "nobody could be told that an answer is not shown");
    }
  }

  return { endFailed, giveBack };
}
