import { once } from "node:events";
import { createServer } from "node:net";
import { right, wrong, type Check } from "../core/checks.ts";
import { listenFailure } from "../support/listen-failure.ts";

/** Checks that Parley's HTTP server can listen, or that a running Parley does. */
export function createPortCheck(host: string, port: number): Check {
  const where = `HOST ${host} PORT ${port}`;
  return {
    subject: "Port",
    async run({ signal }) {
      const server = createServer();
      try {
        await once(server.listen(port, host), "listening", { signal });
        return [right("Port", port === 0 ? `any free one on ${host}` : `${port} on ${host} is free`)];
      } catch (error) {
        const isInUse = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
        if (isInUse && (await isParley(host, port, signal)))
          return [right("Port", `${port} on ${host} is used by a running Parley`)];
        return [wrong("Port", `${where} cannot be used`, listenFailure(error, "PORT"))];
      } finally {
        server.close();
      }
    },
  };
}

async function isParley(host: string, port: number, signal: AbortSignal): Promise<boolean> {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host;
  const name = reachable.includes(":") && !reachable.startsWith("[") ? `[${reachable}]` : reachable;
  try {
    const response = await fetch(`http://${name}:${port}/metrics`, { redirect: "error", signal });
    return (await response.text()).includes("parley_");
  } catch {
    // Not an HTTP server, so not Parley.
    return false;
  }
}
