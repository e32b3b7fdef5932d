import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { respondAt } from "../../../../src/platforms/slack/transport/url-requests.ts";
import { systemClock } from "../../../../src/support/clock.ts";

test("a response that breaks off after its status is none", async () => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-length": "2" });
    response.write("o", () => response.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  try {
    await expect(respondAt(url, { text: "x", blocks: [] }, systemClock)).rejects.toMatchObject({
      code: "platform-unreachable",
      message: "Slack response_url: no response",
    });
  } finally {
    server.close();
    await once(server, "close");
  }
});
