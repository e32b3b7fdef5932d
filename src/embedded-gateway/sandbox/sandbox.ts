import type { Exchange } from "../exchange.ts";
import { wrongKindOfModel } from "../api-error.ts";
import type { ChatBody } from "../requests.ts";
import { sendChatAnswer } from "./chat-answer.ts";
import { answerChat, type DescribeImage } from "./chat-model.ts";

export interface SandboxOptions {
  /** Pause between two words of a streamed answer, in milliseconds. */
  readonly wordDelayMs: number;
  readonly describeImage: DescribeImage;
}

/** The models of the gateway's own. */
export interface Sandbox {
  chat(exchange: Exchange, body: ChatBody): Promise<void>;
}

/** All of its work is done in this process; its libraries are loaded at the first use. */
export function createSandbox(options: SandboxOptions): Sandbox {
  return {
    chat: async (exchange, body) => {
      switch (body.model) {
        case "sandbox/chat": {
          const answer = await answerChat(body, options.describeImage);
          return sendChatAnswer(exchange, body, answer, options.wordDelayMs);
        }
        default: {
          throw wrongKindOfModel(body.model, "chat");
        }
      }
    },
  };
}
