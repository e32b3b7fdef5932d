import { describe, expect, it } from "vitest";
import { ParleyError, type ErrorCode } from "../../../src/core/errors.ts";
import { createImageLoader } from "../../../src/embedded-gateway/load-image.ts";
import { fixture } from "../../fixtures/fixtures.ts";

const param = "messages[0].content[0].image_url.url";

async function load(url: string, answer: Uint8Array | ErrorCode, own?: Buffer) {
  const asked: string[] = [];
  const loadImage = createImageLoader({
    signal: new AbortController().signal,
    downloader: {
      download: (address) => {
        asked.push(address);
        if (typeof answer === "string") return Promise.reject(new ParleyError(answer, "no"));
        return Promise.resolve({ bytes: answer, mediaType: undefined });
      },
      close: () => Promise.resolve(),
    },
    findOwn: () => own,
  });
  const bytes = await loadImage({ url, param }, (bytes) => Promise.resolve(bytes));
  return { bytes, asked };
}

describe("createImageLoader", () => {
  it("downloads public URLs, http ones over https", async () => {
    const png = await fixture("picture.png");
    const { bytes, asked } = await load("http://example.com/a.png?b=c", png);
    expect(bytes.equals(png)).toBe(true);
    expect(asked).toEqual(["https://example.com/a.png?b=c"]);
  });

  it("downloads neither data URIs nor the gateway's own pictures", async () => {
    const png = Buffer.from(await fixture("picture.png"));
    const data = await load(`data:image/png;base64,${png.toString("base64")}`, "internal");
    const own = await load("http://127.0.0.1/pictures/x.png", "internal", png);
    expect([data.asked, own.asked]).toEqual([[], []]);
    expect(own.bytes.equals(png)).toBe(true);
  });

  it.each([
    ["attachment-blocked", /blocked address/],
    ["attachment-too-large", /limit of \d+ bytes/],
    ["attachment-gone", /not there any more/],
    ["attachment-unreadable", /could not be fetched/],
  ] as const)("names the parameter when the download fails with %s", async (code, words) => {
    const failure = load("https://example.com/a.png", code);
    await expect(failure).rejects.toMatchObject({ status: 400, param, code: "invalid_image" });
    await expect(failure).rejects.toThrow(words);
  });

  it("rejects SVG and web pages", async () => {
    for (const text of ["<svg xmlns='http://www.w3.org/2000/svg'/>", "<!doctype html>"]) {
      await expect(load("https://example.com/a.png", Buffer.from(text))).rejects.toMatchObject({
        status: 400,
        param,
      });
    }
  });
});
