import { afterAll, afterEach, beforeAll } from "vitest";
import { chunk, done, json, sse } from "../../simulators/gateway/corpus-row.ts";
import {
  startScriptedGateway,
  type ScriptedAnswer,
  type ScriptedGateway,
  type SeenRequest,
} from "../../simulators/gateway/scripted-gateway.ts";
import { startPageStory, type PageStory, type PageStoryOptions } from "./page-story.ts";

/** Starts one Parley for the stories of a `describe`. Each has empty windows, and sees earlier chats. */
export function usePage(options: PageStoryOptions = {}): PageStory {
  return useStory(() => startPageStory(options));
}

/** A gateway that gives scripted answers. */
export interface Script {
  readonly gateway: ScriptedGateway;
  /** The bodies of the requests of the story so far. */
  readonly asked: string[];
  /** Sets what the next requests get, in this order. */
  answer(...answers: readonly ScriptedAnswer[]): void;
  /** Returns how many of them were not asked for yet. */
  left(): number;
}

const models = JSON.stringify({
  object: "list",
  data: [{ id: "m", object: "model", created: 1, owned_by: "test" }],
});

/** Makes the whole of an answer. */
export const whole = (text: string): ScriptedAnswer => sse(chunk({ content: text }, "stop"), done);
/** Makes the beginning of an answer that does not go on. */
export const hanging = (text: string): ScriptedAnswer => ({
  ...sse(chunk({ content: text })),
  after: "hang",
});

/**
 * Starts one Parley with a scripted gateway for the stories of a `describe`.
 * @param list the response to the request for models; default: a model `m`
 * @param usual answers what no story has scripted; default: nothing does
 */
export function useScriptedPage({
  settings,
  list = models,
  usual,
}: {
  readonly settings?: Readonly<Record<string, string>>;
  readonly list?: string;
  readonly usual?: (request: SeenRequest) => ScriptedAnswer;
} = {}): { readonly story: PageStory; readonly script: Script } {
  let gateway: ScriptedGateway | undefined;
  const asked: string[] = [];
  const answers: ScriptedAnswer[] = [];
  const story = useStory(async () => {
    gateway = await startScriptedGateway((request) => {
      if (request.path === "/v1/models") return json(list);
      asked.push(request.body.toString("utf8"));
      const next = answers.shift() ?? usual?.(request);
      if (next === undefined) throw new Error("no scripted answer for this request");
      return next;
    });
    return await startPageStory({
      settings: { GATEWAY_BASE_URL: gateway.baseUrl, CHAT_MODEL: "m", ...settings },
    });
  });
  afterEach(() => {
    answers.splice(0);
    asked.splice(0);
  });
  afterAll(async () => {
    await gateway?.close();
  });
  return {
    story,
    script: {
      get gateway() {
        return started(gateway);
      },
      asked,
      answer(...next) {
        answers.splice(0, answers.length, ...next);
      },
      left: () => answers.length,
    },
  };
}

function useStory(start: () => Promise<PageStory>): PageStory {
  let running: PageStory | undefined;
  beforeAll(async () => {
    running = await start();
  });
  afterEach(() => running?.leave());
  afterAll(() => running?.close());
  return {
    get url() {
      return started(running).url;
    },
    get folder() {
      return started(running).folder;
    },
    get config() {
      return started(running).config;
    },
    open: (options) => started(running).open(options),
    leave: () => started(running).leave(),
    stop: () => started(running).stop(),
    start: () => started(running).start(),
    close: () => started(running).close(),
  };
}

function started<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("it is started before the first story");
  return value;
}
