import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { right, wrong, type CheckContext, type Finding } from "../../core/checks.ts";

/**
 * Whether the socket of Socket Mode can be reached. Without `isLive` only its host is connected to: an open socket takes
 * part in the bot's work, and a command that Slack sends to it is lost. With it the socket is opened until Slack's hello.
 */
export async function checkSocket(url: string, { signal, isLive }: CheckContext): Promise<Finding> {
  const { hostname, port, protocol } = new URL(url);
  const isSecure = protocol === "wss:";
  try {
    if (isLive) {
      await waitForHello(url, signal);
      return right("Socket", `opened at ${hostname}`);
    }
    await reach(hostname, port === "" ? (isSecure ? 443 : 80) : Number(port), isSecure, signal);
    return right("Socket", `${hostname} can be reached`);
  } catch (error) {
    const reason = error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.name) : "closed";
    return wrong(
      "Socket",
      `no connection to ${hostname} (${reason})`,
      `let this machine connect to ${hostname}:${isSecure ? 443 : port}, WebSocket included, in the firewall or proxy`,
    );
  }
}

function reach(host: string, port: number, isSecure: boolean, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = isSecure ? connectTls({ host, port, servername: host }) : connectTcp({ host, port });
    const abort = (): void => {
      socket.destroy(new Error("timeout"));
    };
    signal.addEventListener("abort", abort, { once: true });
    socket.once(isSecure ? "secureConnect" : "connect", () => {
      socket.destroy();
      resolve();
    });
    socket.once("error", reject);
    socket.once("close", () => signal.removeEventListener("abort", abort));
  });
}

function waitForHello(url: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url);
    const close = (): void => socket.close();
    signal.addEventListener("abort", close, { once: true });
    socket.addEventListener("message", () => {
      resolve();
      close();
    });
    socket.addEventListener("error", () => reject(new Error("refused")));
    socket.addEventListener("close", () => {
      signal.removeEventListener("abort", close);
      reject(new Error("closed before hello"));
    });
  });
}
