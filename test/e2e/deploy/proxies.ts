import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { connect } from "node:tls";
import { freePort } from "../../support/free-port.ts";

/** The public name in the examples of `deploy/`. */
export const publicName = "chat.example.org";

/** A reverse proxy with an example of `deploy/`, on a free port of this machine, with a new certificate. */
export interface Proxy {
  /** Sends a request as a browser would that knows it as {@link publicName}. */
  ask(path: string, options?: AskOptions): Promise<IncomingMessage>;
  stop(): Promise<void>;
}

export interface AskOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** Returns the example with its commented block of the dashboard in force, for this machine. */
function withDashboard(example: string): string {
  const [before = "", block = "", after = ""] = example.split(/(?<=# The dashboard.*\n)((?:\s*#.*\n)+)/);
  return `${before}${block.replaceAll(/^(\s*)# ?/gm, "$1").replace("192.0.2.0/24", "127.0.0.1/32")}${after}`;
}

/** Starts nginx with `deploy/nginx.conf`, changed only in its ports and the paths of its certificate. */
export async function startNginx(folder: string, parleyUrl: string): Promise<Proxy> {
  const port = await freePort();
  const key = join(folder, "key.pem");
  const certificate = join(folder, "certificate.pem");
  const made = spawnSync(
    "openssl",
    // prettier-ignore
    ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", `/CN=${publicName}`,
      "-keyout", key, "-out", certificate],
    { encoding: "utf8" },
  );
  if (made.status !== 0) throw new Error(made.stderr);
  const example = withDashboard(await readFile("deploy/nginx.conf", "utf8"))
    .replaceAll("listen [::]:443 ssl http2;", "")
    .replaceAll("listen 443 ", `listen 127.0.0.1:${port} `)
    .replaceAll(/ssl_certificate .*;/g, `ssl_certificate ${certificate};`)
    .replaceAll(/ssl_certificate_key .*;/g, `ssl_certificate_key ${key};`)
    .replaceAll("http://127.0.0.1:3000", parleyUrl);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${join(folder, name)};`)
    .join("\n");
  const file = join(folder, "nginx.conf");
  const whole = `daemon off; pid ${join(folder, "nginx.pid")}; error_log stderr warn;
    ${process.getuid?.() === 0 ? "user root;" : ""}
    events {}
    http { access_log off; ${temporary}
    ${example} }`;
  await writeFile(file, whole);
  const check = spawnSync("nginx", ["-t", "-p", folder, "-c", file], { encoding: "utf8" });
  if (check.status !== 0) throw new Error(check.stderr);
  return await start("nginx", ["-p", folder, "-c", file], { folder, port });
}

/** Starts Caddy with `deploy/Caddyfile`, changed only in its ports and in how it makes its certificate. */
export async function startCaddy(folder: string, parleyUrl: string): Promise<Proxy> {
  const port = await freePort();
  const home = join(folder, "home");
  await mkdir(home);
  const example = withDashboard(await readFile("deploy/Caddyfile", "utf8"));
  const file = join(folder, "Caddyfile");
  const valid = spawnSync("caddy", ["validate", "--adapter", "caddyfile", "--config", "deploy/Caddyfile"], {
    encoding: "utf8",
    env: { ...process.env, HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home },
  });
  if (valid.status !== 0) throw new Error(valid.stderr);
  const local = example
    .replace(`${publicName} {`, `https://${publicName}:${port} {\n\tbind 127.0.0.1\n\ttls internal`)
    .replaceAll("127.0.0.1:3000", parleyUrl.replace("http://", ""));
  const options = "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n";
  await writeFile(file, options + local);
  return await start("caddy", ["run", "--adapter", "caddyfile", "--config", file], { folder: home, port });
}

async function start(
  program: string,
  args: readonly string[],
  { folder, port }: { readonly folder: string; readonly port: number },
): Promise<Proxy> {
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const child = spawn(program, [...args], { stdio: ["ignore", "pipe", "pipe"], env });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (piece: string) => (output += piece));
  const ended = once(child, "close");
  for (const deadline = performance.now() + 10_000; !(await accepts(port));) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`${program}: ${output}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    ask: (path, options = {}) => ask(port, path, options),
    async stop() {
      // At SIGTERM nginx stops at once, with its workers, but Caddy waits for open connections.
      child.kill(program === "nginx" ? "SIGTERM" : "SIGKILL");
      await ended;
    },
  };
}

function ask(
  port: number,
  path: string,
  { method = "GET", headers = {}, body }: AskOptions,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        host: "127.0.0.1",
        port,
        path,
        method,
        servername: publicName,
        rejectUnauthorized: false,
        agent: false,
        headers: { Host: publicName, Origin: `https://${publicName}`, "x-parley": "1", ...headers },
      },
      resolve,
    );
    asked.once("error", reject);
    asked.end(body);
  });
}

/** Whether a TLS handshake succeeds. Caddy listens before its own authority has issued the certificate. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, servername: publicName, rejectUnauthorized: false });
    socket.once("secureConnect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
