import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { startParley, type Parley } from "../../src/compose.ts";
import { parseConfig } from "../../src/config.ts";
import { createDoctorSections } from "../../src/doctor-sections.ts";
import { toReportText, runChecks } from "../../src/operations/run-checks.ts";
import { createWindows } from "../simulators/browser.ts";
import { send } from "../e2e/web/page-story.ts";
import {
  startScriptedGateway,
  type ScriptedAnswer,
  type ScriptedGateway,
} from "../simulators/gateway/scripted-gateway.ts";
import { allCommands } from "../support/commands.ts";
import { createFlowingClock } from "../support/flowing-clock.ts";
import { freePort } from "../support/free-port.ts";
import { silentLog } from "../support/silent-log.ts";
import { tell, eachPlatform } from "./tell.ts";

const json = { "content-type": "application/json" };
const list: ScriptedAnswer = {
  headers: json,
  body: JSON.stringify({ data: [{ id: "gpt-8", architecture: { output_modalities: ["text"] } }] }),
};
const mendedList: ScriptedAnswer = { headers: json, body: JSON.stringify({ data: [{ id: "gpt-9" }] }) };
const answer: ScriptedAnswer = {
  headers: json,
  body: JSON.stringify({
    model: "gpt-8",
    choices: [{ message: { role: "assistant", content: "All is well." }, finish_reason: "stop" }],
  }),
};
const page: ScriptedAnswer = {
  headers: { "content-type": "text/html" },
  body: "<!DOCTYPE html><title>Welcome</title>",
};
const failure = (status: number, message: string, code: string, headers = {}): ScriptedAnswer => ({
  status,
  headers: { ...json, ...headers },
  body: JSON.stringify({ error: { message, type: code, code } }),
});

/** A gateway in trouble, and what is said of it at each place. With `begins`, only a question shows it. */
interface Trouble {
  readonly name: string;
  readonly list?: ScriptedAnswer;
  readonly chat?: ScriptedAnswer;
  readonly settings?: Readonly<Record<string, string>>;
  readonly isDead?: true;
  readonly begins?: "at a question";
  /** The list of models does not show that the trouble is over. */
  readonly ends?: "with an answer";
  /** This is shown below the question before the failure. */
  readonly status?: RegExp;
  /** This stands after the gateway's address. */
  readonly terminal: string;
  /** The page shows this before anybody asks. */
  readonly banner: string;
  /** This stands below the question. */
  readonly chatSays: string;
  readonly doctor: string;
  /** The state of the gateway in `/admin`. */
  readonly state: string;
}

const unpaid = failure(429, "You exceeded your current quota", "insufficient_quota");
const outOfCredit = "The model gateway's account has run out of credit or budget. Ask your admin.";
const troubles: readonly Trouble[] = [
  {
    name: "a wrong key",
    settings: { GATEWAY_API_KEY: "wrong-key" },
    terminal: "refuses the key (401)",
    banner: "The model gateway does not accept Parley's key. Ask your admin to check GATEWAY_API_KEY.",
    chatSays: "The model gateway does not accept Parley's key. Ask your admin to check GATEWAY_API_KEY.",
    doctor: "refuses GATEWAY_API_KEY (401)",
    state: "key-refused",
  },
  {
    name: "a dead host",
    isDead: true,
    terminal: "cannot be reached (ECONNREFUSED)",
    banner: "The model gateway cannot be reached. Try again in a moment.",
    chatSays: "The model gateway cannot be reached. Try again in a moment.",
    doctor: "cannot be reached (ECONNREFUSED)",
    state: "unreachable",
  },
  {
    name: "a web page",
    list: page,
    chat: page,
    terminal: "answers with a web page, not with an API",
    banner:
      "The model gateway's address answers with a web page, not with an API. Ask your admin to check GATEWAY_BASE_URL.",
    chatSays:
      "The model gateway's address answers with a web page, not with an API. Ask your admin to check GATEWAY_BASE_URL.",
    doctor: "answers with a web page, not with an API",
    state: "web-page",
  },
  {
    name: "a redirect to another address",
    list: { status: 308, headers: { location: "https://gateway.example/v1/models" } },
    chat: { status: 308, headers: { location: "https://gateway.example/v1/chat/completions" } },
    terminal: "redirects to https://gateway.example/v1: set GATEWAY_BASE_URL to that",
    banner:
      "The model gateway's address redirects to https://gateway.example/v1. Ask your admin to set GATEWAY_BASE_URL to that.",
    chatSays:
      "The model gateway's address redirects to https://gateway.example/v1. Ask your admin to set GATEWAY_BASE_URL to that.",
    doctor: "set GATEWAY_BASE_URL to https://gateway.example/v1",
    state: "redirects",
  },
  {
    name: "no such model",
    chat: failure(404, "The model gpt-9 does not exist", "model_not_found"),
    settings: { CHAT_MODEL: "gpt-9" },
    terminal: "has no model gpt-9 (did you mean gpt-8?)",
    banner: "There is no model gpt-9. Did you mean gpt-8?",
    chatSays: "There is no model gpt-9. Did you mean gpt-8?",
    doctor: 'CHAT_MODEL names "gpt-9", which the gateway does not list',
    state: "no-model",
  },
  {
    name: "500",
    list: failure(500, "database is gone", "server_error"),
    chat: failure(500, "database is gone", "server_error"),
    terminal: "fails (500)",
    banner: "The model gateway failed. Try again in a moment.",
    chatSays: "The model gateway failed. Try again in a moment.",
    doctor: "fails (500): database is gone",
    state: "failing",
  },
  {
    name: "429",
    begins: "at a question",
    chat: failure(429, "slow down", "rate_limit_exceeded", { "retry-after": "20" }),
    terminal: "is busy (429)",
    status: /^The gateway is busy; trying again in 20 s/,
    banner: "The model gateway is rate limiting requests. Try again in 20 seconds.",
    chatSays: "The model gateway is rate limiting requests. Try again in 20 seconds.",
    doctor: "lists 1 models",
    state: "busy",
  },
  {
    name: "a used-up quota",
    begins: "at a question",
    ends: "with an answer",
    chat: unpaid,
    terminal: "asks for payment: the account has run out of credit or budget",
    banner: outOfCredit,
    chatSays: outOfCredit,
    doctor: "lists 1 models",
    state: "unpaid",
  },
];

const windows = createWindows();
const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

interface Told {
  readonly parley: Parley;
  readonly gateway: ScriptedGateway;
  readonly clock: ReturnType<typeof createFlowingClock>;
  readonly environment: Readonly<Record<string, string>>;
  /** Ends the trouble. */
  mend(): void;
}

async function start(trouble: Trouble): Promise<Told> {
  let isMended = false;
  const gateway = await startScriptedGateway(({ path, headers }) => {
    if (isMended) return path.endsWith("/models") ? mendedList : answer;
    if (trouble.isDead === true) return { answers: false };
    if (trouble.settings?.["GATEWAY_API_KEY"] !== undefined && headers.authorization !== "Bearer right-key")
      return failure(401, "Incorrect API key", "invalid_api_key");
    return path.endsWith("/models") ? (trouble.list ?? list) : (trouble.chat ?? answer);
  });
  opened.push(() => gateway.close());
  const folder = await mkdtemp(join(tmpdir(), "parley-trouble-"));
  opened.push(() => rm(folder, { recursive: true }));
  const environment = {
    GATEWAY_BASE_URL: trouble.isDead === true ? `http://127.0.0.1:${await freePort()}` : gateway.baseUrl,
    PORT: "0",
    STORE_URL: `sqlite:${join(folder, "parley.db")}`,
    PAGE_TITLES: "first-words",
    ...trouble.settings,
  };
  const clock = createFlowingClock();
  const parley = await startParley(parseConfig(environment), {
    commands: allCommands,
    log: silentLog,
    clock,
  });
  opened.push(() => clock.passing(parley.stop()));
  await Promise.all([parley.connected, clock.passing(parley.checked)]);
  return {
    parley,
    gateway,
    clock,
    environment,
    mend() {
      isMended = true;
    },
  };
}

async function doctorSays(environment: Readonly<Record<string, string>>): Promise<string> {
  const sections = await createDoctorSections({ environment, file: undefined, log: silentLog });
  const gateway = sections.filter(({ title }) => title === "Gateway");
  return toReportText(await runChecks(gateway, { isLive: false, secrets: [], now: () => Date.now() }));
}

interface Dashboard {
  readonly status: string;
  readonly gateway: { readonly state: string };
  readonly parts: { readonly gateway: { readonly problems?: readonly string[] } };
}

async function dashboardOf({ parley }: Told): Promise<Dashboard> {
  return (await (await fetch(`${parley.url}/admin/data`)).json()) as Dashboard;
}

describe.each(troubles)("a gateway in trouble: $name", (trouble) => {
  test("is told by the terminal, the page, its chat, the doctor and the dashboard; and its end", async () => {
    const told = await start(trouble);
    const { parley, clock, environment } = told;
    const name = new URL(environment["GATEWAY_BASE_URL"] ?? "").origin;
    const isLate = trouble.begins === "at a question";
    const terminalSays = [`Gateway  ${name} ${trouble.terminal}`];
    expect(parley.troubles()).toEqual(isLate ? [] : terminalSays);

    const { page } = await windows.open(parley.url);
    opened.push(() => windows.leave());
    const banner = page.locator(".connection", { hasText: trouble.banner });
    if (!isLate) await banner.waitFor();
    await send(page, "Is all well?");
    if (trouble.status !== undefined) await page.getByText(trouble.status).waitFor();
    await clock.passing(page.locator(".from-parley", { hasText: trouble.chatSays }).waitFor());
    // It is said once: by the answer here, and above another chat.
    await banner.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "New chat" }).click();
    await banner.waitFor();

    expect(parley.troubles().join("\n")).toContain(trouble.terminal);
    expect(await dashboardOf(told)).toMatchObject({
      status: "degraded",
      gateway: { state: trouble.state },
      parts: { gateway: { problems: [`${trouble.terminal}: people are told so`] } },
    });
    expect(await doctorSays(environment)).toContain(trouble.doctor);

    if (trouble.isDead === true) return;
    told.mend();
    // If a question does not end the trouble, nobody asks: Parley looks by itself whether it is over.
    if (trouble.ends === "with an answer") await send(page, "And now?");
    await clock.passing(banner.waitFor({ state: "detached" }));
    expect(parley.troubles()).toEqual([]);
    expect(await dashboardOf(told)).toMatchObject({ status: "ready", gateway: { state: "ready" } });
  });
});

tell(eachPlatform, ({ begin }) => {
  test("while the gateway has asked for a pause, who waits reads how long it lasts; then comes the answer", async () => {
    const { model, person, channel, direct, everSent } = await begin();
    const ada = person("Ada");
    channel("general", [ada]);
    model.isBusyFor(20);
    const { answer } = await ada.asks(direct(ada), "Is all well?");
    expect(answer.text).toBe("I heard: Is all well?");
    expect(everSent()).toMatch(/The gateway is busy; trying again in 20 s[^]*Asking again/);
  });
});
