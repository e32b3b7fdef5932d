import { readFileSync } from "node:fs";
import { request as sendRequest, type IncomingHttpHeaders } from "node:http";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startPageServer, type PageServer } from "./page-server.ts";

let server: PageServer;
beforeEach(async () => {
  server = await startPageServer();
});
afterEach(async () => {
  await server.close();
});

function get(
  path: string,
  accept?: string,
  more: Record<string, string> = {},
): Promise<{ status: number; headers: IncomingHttpHeaders; bytes: Buffer }> {
  return new Promise((resolve, reject) => {
    const headers = { ...(accept === undefined ? {} : { "accept-encoding": accept }), ...more };
    const request = sendRequest(`http://${server.host}${path}`, { headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          bytes: Buffer.concat(chunks),
        }),
      );
    });
    request.on("error", reject).end();
  });
}

const source = readFileSync(new URL("../../../../src/platforms/web/page/app.js", import.meta.url));

describe("the page's files", () => {
  it("are sent compressed to browsers that accept it, and are the same", async () => {
    for (const [accept, encoding, decode] of [
      ["gzip, deflate, br", "br", brotliDecompressSync],
      ["gzip", "gzip", gunzipSync],
      ["br;q=0, gzip;q=0.5", "gzip", gunzipSync],
    ] as const) {
      const { headers, bytes } = await get("/page/app.js", accept);
      expect(headers["content-encoding"]).toBe(encoding);
      expect(headers.vary).toBe("Accept-Encoding");
      expect(bytes.length).toBeLessThan(source.length / 2.5);
      expect(decode(bytes).equals(source)).toBe(true);
    }
  });

  it("are sent as they are to others", async () => {
    for (const accept of [undefined, "identity", "br;q=0"]) {
      const { headers, bytes } = await get("/page/app.js", accept);
      expect(headers["content-encoding"]).toBeUndefined();
      expect(bytes.equals(source)).toBe(true);
    }
  });

  it("are not sent again while they are the same, in each encoding", async () => {
    const tags = new Set<string>();
    for (const accept of ["br", "gzip", "identity"]) {
      const { headers } = await get("/page/app.js", accept);
      tags.add(String(headers.etag));
      const again = await get("/page/app.js", accept, { "if-none-match": String(headers.etag) });
      expect([again.status, again.bytes.length]).toEqual([304, 0]);
    }
    expect(tags.size).toBe(3);
  });

  it("weigh less than 60 kB compressed until an empty chat can be used", async () => {
    const document = await get("/", "br");
    const text = brotliDecompressSync(document.bytes).toString("utf8");
    const styles = [...text.matchAll(/<link rel="stylesheet" href="([^"]+)"/g)].map(([, path = ""]) => path);
    const { imports } = JSON.parse(/\{"imports".*\}/.exec(text)?.[0] ?? "{}") as {
      imports: Record<string, string>;
    };
    const found = new Map<string, number>([["/", document.bytes.length]]);
    const load = async (path: string): Promise<void> => {
      if (found.has(path)) return;
      found.set(path, 0);
      const { status, bytes, headers } = await get(path, "br");
      expect(status, path).toBe(200);
      found.set(path, bytes.length);
      if (!path.endsWith(".js")) return;
      const script = (headers["content-encoding"] === "br" ? brotliDecompressSync(bytes) : bytes).toString(
        "utf8",
      );
      // Only static imports count, since what `import()` loads is loaded later.
      for (const [, name = ""] of script.matchAll(/^(?:import|export)\b[^;()]*?["']([^"'\s]+)["']/gm))
        await load(imports[name] ?? new URL(name, `http://x${path}`).pathname);
    };
    for (const path of [...styles, "/page/main.js"]) await load(path);
    expect(found.size).toBeGreaterThan(25);
    const weights = [...found].toSorted((a, b) => b[1] - a[1]);
    const total = weights.reduce((sum, [, bytes]) => sum + bytes, 0);
    expect(total, weights.map(([path, bytes]) => `${path} ${bytes}`).join("\n")).toBeLessThan(60_000);
    expect(found.has("/vendor/marked.js")).toBe(false);
  });
});
