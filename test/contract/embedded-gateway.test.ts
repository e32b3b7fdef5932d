import OpenAI, { toFile, APIError } from "openai";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEmbeddedGateway } from "../../src/embedded-gateway/embedded-gateway.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { createQuietLog } from "../support/quiet-log.ts";

/** The official client uses the sandbox. What works here works with every client of the convention. */
const key = "test-key";
const log = createQuietLog();
let gateway: ReturnType<typeof createEmbeddedGateway>;
let client: OpenAI;

beforeAll(async () => {
  gateway = createEmbeddedGateway({ host: "127.0.0.1", port: 0, apiKeys: [key], log, sandboxWordDelayMs: 0 });
  const { url } = await gateway.listen();
  client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
});

afterAll(async () => {
  await gateway.close();
  expect(log.errors).toEqual([]);
});

type Message = OpenAI.Chat.ChatCompletionMessageParam;
const user = (content: string): Message => ({ role: "user", content });
const assistant = (content: string): Message => ({ role: "assistant", content });

async function say(...messages: Message[]): Promise<string> {
  const answer = await client.chat.completions.create({ model: "sandbox/chat", messages });
  return answer.choices[0]?.message.content ?? "";
}

async function toImagePart(name: string): Promise<OpenAI.Chat.ChatCompletionContentPart> {
  const bytes = Buffer.from(await fixture(name));
  return { type: "image_url", image_url: { url: `data:image/png;base64,${bytes.toString("base64")}` } };
}

function toPng(message: object | undefined): Buffer {
  const { images } = message as { images: { type: string; image_url: { url: string } }[] };
  expect(images[0]?.type).toBe("image_url");
  return Buffer.from(images[0]?.image_url.url.replace(/^data:image\/png;base64,/, "") ?? "", "base64");
}

describe("models.list", () => {
  it("lists the sandbox with the specification's fields and the usual metadata", async () => {
    const { data, object } = await client.models.list();
    expect(object).toBe("list");
    expect(data.map(({ id }) => id)).toEqual(["sandbox/chat", "sandbox/image", "sandbox/transcribe"]);
    for (const model of data) {
      expect(model).toMatchObject({
        object: "model",
        created: expect.any(Number) as number,
        owned_by: "parley-sandbox",
        context_length: expect.any(Number) as number,
        pricing: { prompt: "0" },
        architecture: { input_modalities: expect.any(Array) as string[] },
      });
    }
  });
});

describe("chat.completions.create", () => {
  it("answers with usage, and says that it is a sandbox", async () => {
    const answer = await client.chat.completions.create({ model: "sandbox/chat", messages: [user("hello")] });
    expect(answer).toMatchObject({ object: "chat.completion", model: "sandbox/chat" });
    expect(answer.choices).toHaveLength(1);
    expect(answer.choices[0]).toMatchObject({ index: 0, finish_reason: "stop" });
    expect(answer.choices[0]?.message).toMatchObject({ role: "assistant" });
    expect(answer.choices[0]?.message.content).toMatch(/sandbox.*no language model/is);
    const {
      prompt_tokens: prompt = 0,
      completion_tokens: completion = 0,
      total_tokens: total,
    } = answer.usage ?? {};
    expect(total).toBe(prompt + completion);
    expect(prompt).toBeGreaterThan(0);
  });

  it("streams word by word, with a usage chunk on request", async () => {
    const stream = await client.chat.completions.create({
      model: "sandbox/chat",
      messages: [user("hello")],
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.Chat.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    const texts = chunks
      .flatMap(({ choices }) => choices[0]?.delta.content ?? [])
      .filter((text) => text !== "");
    expect(texts.length).toBeGreaterThan(20);
    expect(texts.join("")).toContain("hello");
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { completion_tokens: expect.any(Number) as number },
    });
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("stop");
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  });

  it("works with the client's stream helper", async () => {
    const stream = client.chat.completions.stream({ model: "sandbox/chat", messages: [user("hello")] });
    const whole = await stream.finalChatCompletion();
    expect(whole.choices[0]).toMatchObject({ finish_reason: "stop" });
    expect(whole.choices[0]?.message.content).toContain("“hello”");
  });

  it.each([true, false])("stops at max_tokens with finish reason length (stream: %s)", async (stream) => {
    const request = { model: "sandbox/chat", max_tokens: 5, messages: [user("write 9000 characters")] };
    const answer = stream
      ? await client.chat.completions.stream(request).finalChatCompletion()
      : await client.chat.completions.create(request);
    expect(answer.choices[0]?.finish_reason).toBe("length");
    // The label counts like the rest.
    expect(answer.choices[0]?.message.content?.split(/\s+/).length).toBeLessThanOrEqual(5);
    if (!stream) expect(answer.usage?.completion_tokens).toBe(5);
  });

  it.each([true, false])("ends before a stop text (stream: %s)", async (stream) => {
    const request = { model: "sandbox/chat", stop: ["no language"], messages: [user("hello")] };
    const answer = stream
      ? await client.chat.completions.stream(request).finalChatCompletion()
      : await client.chat.completions.create(request);
    expect(answer.choices[0]?.finish_reason).toBe("stop");
    expect(answer.choices[0]?.message.content).toBe("*Parley sandbox: I answer by rules, ");
  });

  it.each([true, false])("gives as many choices as n says (stream: %s)", async (stream) => {
    const request = { model: "sandbox/chat", n: 2, messages: [user("hello")] };
    const answer = stream
      ? await client.chat.completions.stream(request).finalChatCompletion()
      : await client.chat.completions.create(request);
    expect(answer.choices.map(({ index }) => index)).toEqual([0, 1]);
    for (const { message } of answer.choices) expect(message.content).toContain("“hello”");
  });

  it("gives the same answer again at temperature 0", async () => {
    const request = { model: "sandbox/chat", temperature: 0, messages: [user("Why is the sky blue?")] };
    const texts = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const answer = await client.chat.completions.create(request);
        return answer.choices[0]?.message.content;
      }),
    );
    expect(new Set(texts).size).toBe(1);
  });

  it("recalls the whole conversation", async () => {
    const talk = [
      user("My dog is called Rex."),
      assistant("Fine."),
      user("I live in Oslo."),
      assistant("Good."),
    ];
    expect(await say(...talk, user("What did I say first?"))).toContain("“My dog is called Rex.”");
    expect(await say(...talk, user("What did I say last?"))).toContain("“I live in Oslo.”");
    const all = await say(...talk, user("List everything I said."));
    expect(all).toMatch(/1\. “My dog is called Rex\.”\n2\. “I live in Oslo\.”/);
  });

  it("writes exactly the requested length, within the default limit", async () => {
    const answer = await client.chat.completions.create({
      model: "sandbox/chat",
      messages: [user("Write 9,000 characters, please")],
    });
    expect(answer.choices[0]?.finish_reason).toBe("stop");
    expect(answer.choices[0]?.message.content?.split("\n\n").slice(1).join("\n\n")).toHaveLength(9000);
  });

  it("shows all Markdown", async () => {
    expect(await say(user("Show me all the markdown"))).toContain("~~struck~~");
  });

  it.each([
    ["picture.png", /\*\*PNG\*\*, 320 × 240 pixels/],
    ["picture.jpg", /\*\*JPEG\*\*, 320 × 240 pixels/],
    ["picture.webp", /\*\*WEBP\*\*, 320 × 240 pixels/],
    ["animated.gif", /\*\*GIF\*\*, 96 × 72 pixels.*4 frames/],
    ["jpeg-named.heic", /\*\*JPEG\*\*, 320 × 240 pixels/],
  ])("describes the bytes of %s", async (name, description) => {
    const content: OpenAI.Chat.ChatCompletionContentPart[] = [
      { type: "text", text: "What is this?" },
      await toImagePart(name),
    ];
    const answer = await say({ role: "user", content });
    expect(answer).toMatch(description);
    expect(answer).toMatch(/on average #[0-9a-f]{6}\./);
  });

  it("tells the colour of a picture", async () => {
    const png = await sharp({ create: { width: 30, height: 20, channels: 3, background: "#3670d9" } })
      .png()
      .toBuffer();
    const url = `data:image/png;base64,${png.toString("base64")}`;
    const answer = await say({ role: "user", content: [{ type: "image_url", image_url: { url } }] });
    expect(answer).toContain("30 × 20 pixels");
    expect(answer).toContain("on average #3670d9.");
  });

  it("describes a picture of an earlier message when asked about it", async () => {
    const shown: Message = { role: "user", content: [await toImagePart("picture.png")] };
    expect(await say(shown, assistant("Nice."), user("What was in the picture?"))).toContain("320 × 240");
  });

  it.each([true, false])("draws in a chat (stream: %s)", async (stream) => {
    const request = { model: "sandbox/image", messages: [user("a red fox in the snow")] };
    let message: object | undefined;
    if (stream) {
      for await (const { choices } of await client.chat.completions.create({ ...request, stream: true })) {
        if (choices[0] !== undefined && "images" in choices[0].delta) message = choices[0].delta;
      }
    } else message = (await client.chat.completions.create(request)).choices[0]?.message;
    expect(await sharp(toPng(message)).metadata()).toMatchObject({
      format: "png",
      width: 1024,
      height: 1024,
    });
  });

  it("draws the words of a message that has a picture", async () => {
    const content: OpenAI.Chat.ChatCompletionContentPart[] = [
      { type: "text", text: "Make it green" },
      await toImagePart("picture.png"),
    ];
    const answer = await client.chat.completions.create({
      model: "sandbox/image",
      messages: [{ role: "user", content }],
    });
    expect(answer.choices[0]?.message.content).toMatch(/sandbox: drawn by rules/i);
    const picture = sharp(toPng(answer.choices[0]?.message));
    expect(await picture.metadata()).toMatchObject({ width: 1024, height: 1024 });
  });
});

describe("images.generate", () => {
  it("draws the requested number of different pictures in the requested size, downloadable without a key", async () => {
    const { data = [] } = await client.images.generate({
      model: "sandbox/image",
      prompt: "three yellow stars over a blue mountain",
      n: 3,
      size: "512x256",
    });
    expect(data).toHaveLength(3);
    const pictures = await Promise.all(
      data.map(async ({ url }) => {
        const response = await fetch(url ?? "");
        expect(response.headers.get("content-type")).toBe("image/png");
        return Buffer.from(await response.arrayBuffer());
      }),
    );
    for (const picture of pictures) {
      expect(await sharp(picture).metadata()).toMatchObject({ format: "png", width: 512, height: 256 });
    }
    expect(new Set(pictures.map((picture) => picture.toString("base64"))).size).toBe(3);
  });

  it("draws the same card for the same prompt, in the colour that it names, and another for other words", async () => {
    const draw = async (prompt: string): Promise<string> => {
      const request = {
        model: "sandbox/image",
        prompt,
        size: "256x256",
        response_format: "b64_json",
      } as const;
      const { data } = await client.images.generate(request);
      return data?.[0]?.b64_json ?? "";
    };
    const red = await draw("a huge red circle");
    expect(await draw("a huge red circle")).toBe(red);
    expect(await draw("a small red circle")).not.toBe(red);
    const { data } = await sharp(Buffer.from(red, "base64"))
      .extract({ left: 20, top: 20, width: 1, height: 1 })
      .removeAlpha()
      .raw()
      .toBuffer({ resolveWithObject: true });
    expect([...data]).toEqual([0xff, 0, 0]);
  });

  it("survives a prompt that is markup", async () => {
    const prompt = `</text><image href="file:///etc/passwd"/>&amp; ]]> \u0000\u0008 \uD800 "'`;
    const { data } = await client.images.generate({
      model: "sandbox/image",
      prompt,
      response_format: "b64_json",
    });
    expect(await sharp(Buffer.from(data?.[0]?.b64_json ?? "", "base64")).metadata()).toMatchObject({
      width: 1024,
    });
  });
});

describe("audio.transcriptions.create", () => {
  it.each([
    ["voice.ogg", "Ogg, 2.3 s"],
    ["voice.m4a", "MP4 (M4A), 2.3 s"],
    ["voice.webm", "WebM, 2.3 s"],
    ["recorder.webm", "WebM, 2.3 s"],
    ["voice.mp3", "MP3, 2.4 s"],
    ["voice.wav", "WAV, 2.3 s"],
    ["mp4-named.ogg", "MP4 (M4A), "],
  ])("measures %s and says that it does not recognise words", async (name, facts) => {
    const answer = await client.audio.transcriptions.create({
      model: "sandbox/transcribe",
      file: await toFile(await fixture(name), name),
      language: "en",
      prompt: "Parley, Oslo",
    });
    expect(answer.text).toContain(facts);
    expect(answer.text).toMatch(/sandbox.*cannot recognise words/i);
    expect(answer.text).toContain("Language given: en.");
    expect(answer.text).toContain("Hint given: “Parley, Oslo”.");
  });

  it.each(["empty.bin", "notes.txt", "picture.png", "video.mp4"])("refuses %s", async (name) => {
    const request = client.audio.transcriptions.create({
      model: "sandbox/transcribe",
      file: await toFile(await fixture(name), "voice.ogg"),
    });
    await expect(request).rejects.toMatchObject({ status: 400, param: "file" });
  });
});

describe("errors", () => {
  it("reach the client with status, code and parameter", async () => {
    const request = { model: "sandbox/chat", messages: [user("x")] };
    const failure = async (change: object): Promise<APIError> => {
      try {
        await client.chat.completions.create({ ...request, ...change });
      } catch (error) {
        if (error instanceof APIError) return error;
      }
      throw new Error("There was no API error.");
    };
    expect(await failure({ temperature: 2.1 })).toMatchObject({ status: 400, param: "temperature" });
    expect(await failure({ model: "Sandbox/Chat" })).toMatchObject({
      status: 404,
      param: "model",
      code: "model_not_found",
      message: expect.stringContaining("sandbox/chat") as string,
    });
    expect(await failure({ model: "sandbox/transcribe" })).toMatchObject({
      status: 400,
      code: "model_not_supported",
    });
    const stranger = client.withOptions({ apiKey: "another" });
    await expect(stranger.models.list()).rejects.toMatchObject({ status: 401, code: "invalid_api_key" });
  });
});
