import type { Assistant } from "./assistant/assistant.ts";
import { unpricedLine } from "./compose-gateway.ts";
import { isServing } from "./compose-operations.ts";
import { part, type PartOptions, type Parts } from "./compose-parts.ts";
import type { Config } from "./config.ts";
import type { Store } from "./conversations/open-store.ts";
import { isParleyError, ParleyError } from "./core/errors.ts";
import type { Gateway, GatewayTrouble } from "./core/gateway.ts";
import type { CreatedPlatform } from "./core/platform-module.ts";
import type { Log } from "./core/telemetry.ts";
import { keepConnected, type Link } from "./operations/keep-connected.ts";
import type { Part } from "./operations/open-parts.ts";
import { inTime } from "./support/clock.ts";

/** How often turns that an outage left open are resumed, in milliseconds. */
const recoverEveryMs = 60_000;
/** How long the first request to the gateway waits for the platforms, and the start for that request. */
const maxStartWaitMs = 5000;

/** Several instances recover more often, so that turns of a dead one resume soon after its leases end. */
function recoveryIntervalOf(store: Store, config: Config): number {
  return store.queue.isShared ? Math.min(15_000, Math.ceil(config.STORE_LEASE_MS / 3)) : recoverEveryMs;
}

/** What runs from the start until the end. */
export function toRunning({ config, log, clock }: PartOptions): Part<Parts>[] {
  const patience = { clock, keepsAlive: false };
  return [
    part({
      name: "links",
      needs: ["platforms", "assistant", "server", "meter", "givenUp"],
      open: ({ platforms, assistant, meter, givenUp }) => {
        const all = platforms.map(({ platform }) =>
          keepConnected(platform, {
            assistant,
            history: assistant.history,
            log,
            clock,
            meter,
            onConnected: () => recover(assistant, platform, log),
          }),
        );
        const connected = whenConnected(all, (index, error) => {
          const id = platforms[index]?.platform.id ?? "";
          givenUp.set(id, error);
          log.error({ platform: id, err: error }, "platform given up; the other parts run without it");
        });
        return { connected, stop: () => stopTurns(all, assistant, config, log) };
      },
      close: (links) => links.stop(),
    }),
    part({
      name: "recovery",
      needs: ["store", "platforms", "assistant", "links"],
      open: ({ store, platforms, assistant }) =>
        clock.every(recoveryIntervalOf(store, config), () => {
          for (const { platform } of platforms) {
            if (isServing(platform.health())) void recover(assistant, platform, log);
          }
        }),
      close: (end) => end(),
    }),
    part({
      name: "watch",
      needs: ["gateway", "links"],
      open: ({ gateway }) => {
        const ends = [gateway.watch.onChange((trouble) => tellTrouble(trouble, log)), gateway.watch.watch()];
        return () => {
          for (const end of ends) end();
        };
      },
      close: (end) => end(),
    }),
    part({
      name: "readied",
      needs: ["gateway", "links"],
      open: ({ gateway, links }) => {
        // The list serves completion and capability questions, and a slow gateway must not delay the
        // start. It follows the platforms' first requests, but does not wait for one that is down.
        const linked = Promise.allSettled([links.connected]);
        const advice: string[] = [];
        const asked = inTime(linked, maxStartWaitMs, patience).then(async () => {
          await warmUp(gateway.client, log);
          const line = await unpricedLine(config, gateway);
          if (line !== undefined) advice.push(`Price    ${line}`);
        });
        return { checked: inTime(asked, maxStartWaitMs, patience), advice };
      },
    }),
  ];
}

/** Takes no new events, finishes running answers within SHUTDOWN_TIMEOUT_MS, and disconnects. */
async function stopTurns(
  links: readonly Link[],
  assistant: Assistant,
  { SHUTDOWN_TIMEOUT_MS: deadlineMs }: Config,
  log: Log,
): Promise<void> {
  // This comes first, so that the services deliver new events to another instance or later.
  await Promise.allSettled(links.map((link) => link.pause()));
  const broken = await assistant.stop({ deadlineMs });
  if (broken > 0)
    log.warn({ turns: broken }, "turns aborted at the shutdown deadline; the next start resumes them");
  await Promise.allSettled(links.map((link) => link.stop()));
}

function tellTrouble(trouble: GatewayTrouble | undefined, log: Log): void {
  if (trouble === undefined) log.info({}, "the gateway answers again");
  else
    log.warn({ code: trouble.error.code }, `the gateway ${trouble.text}: \`npm run doctor\` says what to do`);
}

async function recover(assistant: Assistant, { id }: CreatedPlatform["platform"], log: Log): Promise<void> {
  try {
    await assistant.recover(id);
  } catch (error) {
    log.warn({ platform: id, err: error }, "listing open turns failed; retried soon");
  }
}

/**
 * Waits for all connections. A platform that refuses to connect for good, because of a wrong token, is given
 * up if another one is connected or still trying. If none is left, the start fails with the errors of all.
 */
async function whenConnected(
  links: readonly Link[],
  giveUp: (index: number, error: ParleyError) => void,
): Promise<void> {
  const refusals: ParleyError[] = [];
  const connecting = links.map(async ({ connected }, index) => {
    try {
      await connected;
    } catch (error) {
      if (!isParleyError(error)) throw error;
      refusals.push(error);
      if (refusals.length === 1 && links.length === 1) throw error;
      if (refusals.length === links.length)
        throw new ParleyError(error.code, refusals.map(({ message }) => message).join("\n"), {
          cause: error,
        });
      giveUp(index, error);
    }
  });
  await Promise.all(connecting);
}

async function warmUp(gateway: Gateway, log: Log): Promise<void> {
  try {
    await gateway.listModels(AbortSignal.timeout(30_000));
  } catch (error) {
    // The watch reports what this shows about the gateway.
    log.debug(
      { err: error, code: isParleyError(error) ? error.code : undefined },
      "the gateway did not list its models",
    );
  }
}
