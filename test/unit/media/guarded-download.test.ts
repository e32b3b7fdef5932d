import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { connect as connectSocket, type AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { ParleyError } from "../../../src/core/errors.ts";
import {
  type Connect,
  createDownloader,
  type Downloader,
  type LookupAll,
} from "../../../src/media/guarded-download.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

interface TestServer {
  readonly host: string;
  readonly url: string;
  readonly server: Server;
  /** The Authorization header of each request, or `undefined` where it had none. */
  readonly authorizations: (string | undefined)[];
}

async function serve(listener: RequestListener): Promise<TestServer> {
  const authorizations: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    authorizations.push(request.headers.authorization);
    listener(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { host, url: `http://${host}`, server, authorizations };
}

function downloaderFor(options: Partial<Parameters<typeof createDownloader>[0]>): Downloader {
  const downloader = createDownloader({ trusted: [], allowPublicHttps: false, ...options });
  cleanups.push(() => downloader.close());
  return downloader;
}

const limits = { maxBytes: 1000, timeoutMs: 10_000, signal: new AbortController().signal };

async function failureOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (error instanceof ParleyError) return error.code;
    throw error;
  }
  return "no error";
}

// Attack: Downloads without an end, or compressed. What holds: byte cap, one deadline over all
// redirects, no content encoding.
describe("createDownloader, trusted hosts", () => {
  it("returns the bytes and the content type", async () => {
    const { host, url } = await serve((_, response) => {
      response.writeHead(200, { "content-type": "Image/PNG; charset=x" }).end("bytes");
    });
    const downloader = downloaderFor({ trusted: [{ host, allowHttp: true }] });
    const { bytes, mediaType } = await downloader.download(`${url}/a?b=c`, limits);
    expect(Buffer.from(bytes).toString()).toBe("bytes");
    expect(mediaType).toBe("image/png");
  });

  it("sends the token to its host", async () => {
    const server = await serve((_, response) => void response.end("ok"));
    const downloader = downloaderFor({
      trusted: [{ host: server.host, allowHttp: true, authorization: "Bearer secret" }],
    });
    await downloader.download(server.url, limits);
    expect(server.authorizations).toEqual(["Bearer secret"]);
  });

  it("follows a redirect to another trusted host without the first one's token", async () => {
    const second = await serve((_, response) => void response.end("second"));
    const first = await serve((_, response) => void response.writeHead(302, { location: second.url }).end());
    const downloader = downloaderFor({
      trusted: [
        { host: first.host, allowHttp: true, authorization: "Bearer secret" },
        { host: second.host, allowHttp: true },
      ],
    });
    const { bytes } = await downloader.download(first.url, limits);
    expect(Buffer.from(bytes).toString()).toBe("second");
    expect(first.authorizations).toEqual(["Bearer secret"]);
    expect(second.authorizations).toEqual([undefined]);
  });

  it("refuses a redirect to loopback on another port, in plain and in https", async () => {
    const secret = await serve((_, response) => void response.end("secret"));
    for (const location of [secret.url, secret.url.replace("http:", "https:")]) {
      const first = await serve((_, response) => void response.writeHead(307, { location }).end());
      const downloader = downloaderFor({
        trusted: [{ host: first.host, allowHttp: true }],
        allowPublicHttps: true,
      });
      expect(await failureOf(downloader.download(first.url, limits))).toBe("attachment-blocked");
    }
    expect(secret.authorizations).toEqual([]);
  });

  it("rejects a redirect to another host when only trusted hosts are allowed", async () => {
    const first = await serve((_, response) => {
      response.writeHead(302, { location: "https://pictures.example/" }).end();
    });
    const downloader = downloaderFor({ trusted: [{ host: first.host, allowHttp: true }] });
    expect(await failureOf(downloader.download(first.url, limits))).toBe("attachment-blocked");
  });

  it("follows three redirects and refuses the fourth", async () => {
    const server = await serve((request, response) => {
      const left = Number(request.url?.slice(1));
      if (left === 0) response.end("end");
      else response.writeHead(301, { location: `/${left - 1}` }).end();
    });
    const downloader = downloaderFor({ trusted: [{ host: server.host, allowHttp: true }] });
    const { bytes } = await downloader.download(`${server.url}/3`, limits);
    expect(Buffer.from(bytes).toString()).toBe("end");
    expect(await failureOf(downloader.download(`${server.url}/4`, limits))).toBe("attachment-blocked");
    expect(server.authorizations).toHaveLength(8);
  });

  it("rejects user info, other protocols, plain http and invalid URLs", async () => {
    const { host, url } = await serve((_, response) => void response.end("ok"));
    const open = downloaderFor({ trusted: [{ host, allowHttp: true }], allowPublicHttps: true });
    const strict = downloaderFor({ trusted: [{ host }] });
    const userInfo = url.replace("http://", "http://user:pass@");
    for (const address of [
      userInfo,
      "file:///etc/passwd",
      "data:text/plain,a",
      "http://example.com/",
      "//x",
      "",
    ]) {
      expect(await failureOf(open.download(address, limits)), address).toBe("attachment-blocked");
    }
    expect(await failureOf(strict.download(url, limits))).toBe("attachment-blocked");
  });

  it("rejects by the announced size before reading", async () => {
    let sent = 0;
    const { host, url } = await serve((_, response) => {
      response.writeHead(200, { "content-length": "1000000" });
      response.write(Buffer.alloc(10));
      sent += 10;
    });
    const downloader = downloaderFor({ trusted: [{ host, allowHttp: true }] });
    expect(await failureOf(downloader.download(url, limits))).toBe("attachment-too-large");
    expect(sent).toBe(10);
  });

  it("stops reading past the cap when no size was announced, and ends the connection", async () => {
    let ended: Promise<unknown> | undefined;
    const { host, url } = await serve((_, response) => {
      ended = once(response, "close");
      const pump = () => {
        while (!response.destroyed && response.write(Buffer.alloc(500)));
      };
      response.on("drain", pump);
      pump();
    });
    const downloader = downloaderFor({ trusted: [{ host, allowHttp: true }] });
    expect(await failureOf(downloader.download(url, limits))).toBe("attachment-too-large");
    await ended;
  });

  it("takes a file of exactly the cap", async () => {
    const { host, url } = await serve((_, response) => void response.end(Buffer.alloc(1000)));
    const downloader = downloaderFor({ trusted: [{ host, allowHttp: true }] });
    expect((await downloader.download(url, limits)).bytes).toHaveLength(1000);
  });

  it("times out on a stalled body", async () => {
    let ended: Promise<unknown> | undefined;
    const { host, url } = await serve((_, response) => {
      ended = once(response, "close");
      response.write("a");
    });
    const downloader = downloaderFor({ trusted: [{ host, allowHttp: true }] });
    const work = downloader.download(url, { ...limits, timeoutMs: 100 });
    expect(await failureOf(work)).toBe("attachment-unreadable");
    await ended;
  });

  it("throws the signal's reason and ends the request when aborted", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    let ended: Promise<unknown> | undefined;
    const { host, url } = await serve((_, response) => {
      ended = once(response, "close");
      response.write("a");
      controller.abort(reason);
    });
    const downloader = downloaderFor({ trusted: [{ host, allowHttp: true }] });
    const work = downloader.download(url, { ...limits, signal: controller.signal });
    await expect(work).rejects.toBe(reason);
    await ended;
    await expect(downloader.download(url, { ...limits, signal: controller.signal })).rejects.toBe(reason);
  });

  it("distinguishes gone from unreadable", async () => {
    const { host, url } = await serve((request, response) => {
      const status = Number(request.url?.slice(1));
      if (status === 1) response.writeHead(200, { "content-length": "50" }).write("cut");
      if (status === 1) response.destroy();
      else response.writeHead(status, { "content-encoding": "gzip" }).end("no");
    });
    const downloader = downloaderFor({ trusted: [{ host, allowHttp: true }] });
    const expected = {
      404: "gone",
      410: "gone",
      403: "gone",
      500: "unreadable",
      1: "unreadable",
      200: "unreadable",
    };
    for (const [status, code] of Object.entries(expected)) {
      expect(await failureOf(downloader.download(`${url}/${status}`, limits)), status).toBe(
        `attachment-${code}`,
      );
    }
  });
});

describe("createDownloader, public hosts", () => {
  const inside = [
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://0/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[fe80::1]/",
    "https://[fd00::1]/",
    "https://10.0.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://192.168.0.1/",
    "https://100.64.0.1/",
    "https://localhost/",
  ];
  for (const url of inside) {
    it(`never connects to ${url}`, async () => {
      const dialled: string[] = [];
      const connect: Connect = (options, callback) => {
        dialled.push(options.hostname);
        callback(new Error("dialled"), null);
      };
      // Names use the real resolver and socket. IP addresses must not even be connected to.
      const isName = url.includes("localhost");
      const downloader = downloaderFor({ allowPublicHttps: true, ...(isName ? {} : { connect }) });
      expect(await failureOf(downloader.download(url, limits))).toBe("attachment-blocked");
      expect(dialled).toEqual([]);
    });
  }

  it("never connects to a name that resolves to private addresses", async () => {
    const lookup: LookupAll = (_, callback) =>
      callback(null, [
        { address: "127.0.0.1", family: 4 },
        { address: "::1", family: 6 },
      ]);
    const downloader = downloaderFor({ allowPublicHttps: true, lookup });
    expect(await failureOf(downloader.download("https://pictures.example/", limits))).toBe(
      "attachment-blocked",
    );
  });

  it("disconnects before anything is sent when the socket is connected to a private address", async () => {
    const server = await serve((_, response) => void response.end("secret"));
    const downloader = downloaderFor({ allowPublicHttps: true, connect: dial(server) });
    expect(await failureOf(downloader.download("https://pictures.example/", limits))).toBe(
      "attachment-blocked",
    );
    expect(server.authorizations).toEqual([]);
  });

  it("downloads from a public address, without any token", async () => {
    const server = await serve((_, response) => void response.end("picture"));
    const downloader = downloaderFor({
      trusted: [{ host: "files.example", authorization: "Bearer secret" }],
      allowPublicHttps: true,
      connect: dial(server, "93.184.216.34"),
    });
    const { bytes } = await downloader.download("https://pictures.example/a.png", limits);
    expect(Buffer.from(bytes).toString()).toBe("picture");
    expect(server.authorizations).toEqual([undefined]);
  });

  for (const location of [
    "https://169.254.169.254/latest/meta-data/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "http://pictures.example/",
    "https://user:secret@pictures.example/",
    "file:///etc/passwd",
    "data:image/png;base64,AA==",
  ]) {
    it(`does not follow a redirect of a public host to ${location}`, async () => {
      const server = await serve((_, response) => void response.writeHead(302, { location }).end());
      const downloader = downloaderFor({ allowPublicHttps: true, connect: dial(server, "93.184.216.34") });
      expect(await failureOf(downloader.download("https://pictures.example/", limits))).toBe(
        "attachment-blocked",
      );
      expect(server.authorizations).toHaveLength(1);
    });
  }

  it("never decompresses: a gzip bomb is refused", async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const server = await serve(
      (_, response) => void response.writeHead(200, { "content-encoding": "gzip" }).end(bomb),
    );
    const downloader = downloaderFor({ allowPublicHttps: true, connect: dial(server, "93.184.216.34") });
    const work = downloader.download("https://pictures.example/", { ...limits, maxBytes: 100_000_000 });
    expect(await failureOf(work)).toBe("attachment-unreadable");
  });

  it("counts a redirect without an end against the deadline of the download", async () => {
    const server = await serve((_, response) => {
      response.writeHead(302, { location: "https://pictures.example/next" });
      response.write("x");
    });
    const downloader = downloaderFor({ allowPublicHttps: true, connect: dial(server, "93.184.216.34") });
    const work = downloader.download("https://pictures.example/", { ...limits, timeoutMs: 200 });
    expect(await failureOf(work)).toBe("attachment-unreadable");
  });

  it("rejects other hosts when only trusted hosts are allowed", async () => {
    const server = await serve((_, response) => void response.end("picture"));
    const downloader = downloaderFor({ connect: dial(server, "93.184.216.34") });
    expect(await failureOf(downloader.download("https://pictures.example/", limits))).toBe(
      "attachment-blocked",
    );
    expect(server.authorizations).toEqual([]);
  });
});

/** Connects every name to a loopback server in plain text, as if its address were `address`. */
function dial(server: TestServer, address?: string): Connect {
  return (_, callback) => {
    const socket = connectSocket((server.server.address() as AddressInfo).port, "127.0.0.1");
    if (address !== undefined) Object.defineProperty(socket, "remoteAddress", { value: address });
    socket.once("connect", () => callback(null, socket));
    socket.once("error", (error) => callback(error, null));
  };
}
