import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { connect, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import { startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { has } from "../../support/requirements.ts";
import { runParley } from "./run-parley.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-proxy-"));
  if (!has("openssl")) return;
  execFileSync(
    "openssl",
    // prettier-ignore
    ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=parley.test",
      "-addext", "subjectAltName=DNS:discord.test,DNS:gateway.test",
      "-keyout", join(folder, "key.pem"), "-out", join(folder, "certificate.pem")],
    { stdio: "ignore" },
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Joins two connections until either ends. */
function joinSockets(one: Socket, other: Socket): void {
  for (const socket of [one, other]) socket.on("error", () => undefined);
  one.pipe(other).pipe(one);
}

/**
 * Starts a proxy that tunnels to servers by their names, which only it knows: each is a plain one of this
 * machine behind TLS.
 */
async function startProxy(ports: Readonly<Record<string, number>>) {
  const [key, cert] = await Promise.all(
    ["key.pem", "certificate.pem"].map((name) => readFile(join(folder, name))),
  );
  const secure = new Map<string, number>();
  for (const [name, port] of Object.entries(ports))
    secure.set(
      `${name}:443`,
      await listening(
        createTlsServer({ key, cert }, (socket) => joinSockets(socket, connect(port, "127.0.0.1"))),
      ),
    );
  const seen = new Set<string>();
  const proxy = createServer((_, response) => response.writeHead(403).end());
  proxy.on("connect", (request, socket: Socket) => {
    seen.add(request.url ?? "");
    const port = secure.get(request.url ?? "");
    if (port === undefined) return void socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    const tunnel = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      joinSockets(socket, tunnel);
    });
    tunnel.on("error", () => socket.destroy());
  });
  return { url: `http://127.0.0.1:${await listening(proxy)}`, seen };
}

const words = 'data: {"choices":[{"delta":{"content":"through the tunnel"},"finish_reason":"stop"}]}\n\n';

async function startWorld() {
  const discord = await createDiscordSimulator();
  onTestFinished(() => discord.close());
  const gateway = await startScriptedGateway({ body: `${words}data: [DONE]\n\n` }, { apiKey: "any" });
  onTestFinished(() => gateway.close());
  const proxy = await startProxy({
    "discord.test": Number(new URL(discord.apiUrl).port),
    "gateway.test": Number(new URL(gateway.baseUrl).port),
  });
  const settings = {
    HTTPS_PROXY: proxy.url,
    DISCORD_TOKEN: discord.token,
    DISCORD_API_URL: discord.apiUrl.replace(/^http:\/\/[^/]+/, "https://discord.test"),
    GATEWAY_BASE_URL: "https://gateway.test",
    GATEWAY_API_KEY: "any",
    CHAT_MODEL: "m",
  };
  return { discord, gateway, proxy, settings };
}

describe.skipIf(!has("openssl"))("behind a proxy that tunnels", () => {
  it("Discord, its socket and the gateway are reached over TLS", async () => {
    const { discord, proxy, settings } = await startWorld();
    const certificate = join(folder, "certificate.pem");
    const parley = await runParley({ settings: { ...settings, NODE_EXTRA_CA_CERTS: certificate } });
    onTestFinished(() => parley.remove());
    await parley.says(/Ready\./);
    const channel = discord.channel("general");
    discord.person("Ada").sends({ channel, text: "hello", mentionBot: true });
    await until(
      () => channel.threads().some((thread) => thread.fromBot()[0]?.text.startsWith("through the tunnel")),
      {
        timeoutMs: 30_000,
        explain: () => parley.output(),
      },
    );
    expect([...proxy.seen].toSorted()).toEqual(["discord.test:443", "gateway.test:443"]);
  });

  it("a certificate that nobody has vouched for is refused in the tunnel, too", async () => {
    const { gateway, proxy, settings } = await startWorld();
    const doctor = await runParley({ args: ["doctor"], settings });
    onTestFinished(() => doctor.remove());
    expect(await doctor.ended).toBe(1);
    expect(doctor.output()).toMatch(/✗ .*(DEPTH_ZERO_SELF_SIGNED_CERT|certificate)/i);
    expect(proxy.seen.has("gateway.test:443")).toBe(true);
    expect(gateway.requests).toEqual([]);
  });
});
