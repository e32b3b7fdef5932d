import { describe, it } from "vitest";
import { corpus } from "../../simulators/gateway/corpus.ts";
import {
  type Cut,
  type ScriptedGateway,
  startScriptedGateway,
} from "../../simulators/gateway/scripted-gateway.ts";
import { apiKey, createTestClient, hello, never, outcomeOf } from "./harness.ts";

const cuts: readonly Cut[] = ["whole", "bytes", "in-characters", "in-fields"];

describe.for(cuts)("answers of real services, cut %s", (cut) => {
  // Some wait for a silence, and others need not wait for them.
  it.concurrent.for(corpus.map((row) => [row.name, row] as const))("%s", async ([, row], { expect }) => {
    const gateway: ScriptedGateway = await startScriptedGateway({ ...row.answer, cut }, { apiKey });
    // Only a silent server's silence is waited for, since a busy machine may be slow.
    const [firstEventMs, idleMs] = row.answer.after === "hang" ? [400, 250] : [5000, 5000];
    const client = createTestClient(gateway.baseUrl, {
      timeouts: { connectMs: 5000, firstEventMs, idleMs, totalMs: 5000 },
    });
    const { last, says, ...outcome } = await outcomeOf(client.chat(hello, never()));
    await client.close();
    await gateway.close();
    expect(outcome).toEqual(row.expected);
    if (row.says !== undefined) expect(says).toContain(row.says);
    if (last?.kind === "finish") expect(last.usage.promptTokens).toBeGreaterThan(0);
  });
});
