import { hash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { makeLongWav } from "../../support/recordings.ts";
import { createDiscordSurface } from "../crash/crash-platforms.ts";
import { runParley } from "./run-parley.ts";

const program = join(import.meta.dirname, "crashing-parley.ts");
const headers = { "content-type": "application/json" };

it("each part of a long recording is transcribed once, although the process is killed after each of them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "parley-recordings-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const sent: string[] = [];
  const gateway = await startScriptedGateway(({ path, body }) => {
    if (path === "/v1/models")
      return { headers, body: JSON.stringify({ object: "list", data: [{ id: "m", object: "model" }] }) };
    sent.push(hash("sha256", fileIn(body)));
    return { headers, body: JSON.stringify({ text: `the words of part ${sent.length}` }) };
  });
  onTestFinished(() => gateway.close());
  const discord = await createDiscordSurface("command");
  onTestFinished(() => discord.close());

  async function start(dieAt: string) {
    const settings = { GATEWAY_BASE_URL: gateway.baseUrl, TRANSCRIPTION_MODEL: "m", DIE_AT: dieAt };
    const parley = await runParley({ folder, program, settings: { ...settings, ...discord.settings } });
    onTestFinished(() => parley.remove());
    await parley.says(/Ready\./);
    await discord.meet(parley.output());
    return parley;
  }

  const first = await start("keepHeard after 1");
  const seconds = 21 * 60;
  await discord.speak({ isCommand: true, bytes: makeLongWav(seconds), seconds });
  expect(await first.ended).toBe(null);
  expect(await (await start("keepHeard after 1")).ended).toBe(null);
  await start("");
  const words = ["part 1", "part 2", "part 3"];
  const isShown = async () =>
    (await discord.seen()).filter(({ text }) => words.every((word) => text.includes(word))).length === 1;
  await vi.waitUntil(isShown, { timeout: 60_000, interval: 50 });
  expect(sent).toHaveLength(3);
  expect(new Set(sent).size).toBe(3);
}, 120_000);

/** The file of a form, which is its last part. */
function fileIn(form: Buffer): Buffer {
  const from = form.indexOf("\r\n\r\n", form.indexOf('name="file"')) + 4;
  return form.subarray(from, form.lastIndexOf("\r\n--"));
}
