import type { Clock } from "../../core/clock.ts";
import type { Reply } from "../../core/platform.ts";
import { currentTurn, inTurn } from "../../core/turn-scope.ts";
import { currentLanguage, inLanguage, translate } from "../../words/translate.ts";

/** A shorter wait is not worth words. */
const minShownMs = 2000;
const tickMs = 1000;
/** Until then the seconds are counted in fives: each change may be an edit of a message. */
const fromSecondsBySecond = 10;

/**
 * Does the work of a turn; while the gateway has asked for a pause, the reply says how long it lasts, counted down.
 */
export async function showingWaits<T>(
  reply: Pick<Reply, "status">,
  clock: Pick<Clock, "monotonic" | "every">,
  work: () => Promise<T>,
): Promise<T> {
  const scope = currentTurn();
  if (scope === undefined) return await work();
  const language = currentLanguage();
  let stopCounting = (): void => undefined;
  const onWait = (waitMs: number): void => {
    stopCounting();
    if (waitMs < minShownMs) return;
    const endsAt = clock.monotonic() + waitMs;
    const show = (): void => {
      const count = Math.ceil((endsAt - clock.monotonic()) / 1000);
      if (count > 0 && count > fromSecondsBySecond && count % 5 !== 0 && count < waitMs / 1000) return;
      inLanguage(language, () =>
        reply.status(
          count > 0 ? translate("status.gateway-busy", { count }) : translate("status.asking-again"),
          { isLong: true },
        ),
      );
      if (count <= 0) stopCounting();
    };
    stopCounting = clock.every(tickMs, show);
    show();
  };
  try {
    return await inTurn({ ...scope, onWait }, work);
  } finally {
    stopCounting();
  }
}
