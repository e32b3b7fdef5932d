import { expect, test } from "vitest";
import {
  observing,
  type MakeRequest,
  type SentRequest,
} from "../../../../src/platforms/discord/http-agent.ts";

test.each([
  ["https://discord.com/api/v10/channels/1/messages?limit=1", "/channels/1/messages"],
  ["http://127.0.0.1:8080/v10/channels/1/typing", "/channels/1/typing"],
  ["https://proxy.example/v2/discord/api/v10/channels/1/messages/2", "/channels/1/messages/2"],
])("an observer is told the path of the API of %s", async (url, path) => {
  const seen: SentRequest[] = [];
  const response = { status: 200 } as Awaited<ReturnType<MakeRequest>>;
  const makeRequest = observing(
    () => Promise.resolve(response),
    (request) => seen.push(request),
  );
  expect(await makeRequest(url, { method: "patch" })).toBe(response);
  await makeRequest(url, {});
  expect(seen).toEqual([
    { method: "PATCH", path },
    { method: "GET", path },
  ]);
});
