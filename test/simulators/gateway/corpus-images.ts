import { chunk, done, finished, json, oneGif, sse, uri, whole, words, type CorpusRow } from "./corpus-row.ts";

/** Images in chat answers, in all their shapes. */
export const imageRows: readonly CorpusRow[] = [
  {
    name: "delta.images",
    answer: sse(
      chunk({ content: words }),
      chunk({ images: [{ type: "image_url", image_url: { url: uri } }] }),
      chunk({}, "stop"),
      done,
    ),
    expected: { ...finished, images: ["image/png"] },
  },
  {
    name: "message.images",
    answer: json(whole({ content: words, images: [{ type: "image_url", image_url: { url: uri } }] })),
    expected: { ...finished, images: ["image/png"] },
  },
  {
    name: "an image without a word",
    answer: json(whole({ content: "", images: [{ type: "image_url", image_url: { url: uri } }] })),
    expected: { text: "", finish: "stop", images: ["image/png"] },
  },
  {
    name: "Markdown with a data URI",
    answer: sse(chunk({ content: `${words}![a ] picture](${uri}) ok` }), chunk({}, "stop"), done),
    expected: { text: `${words} ok`, finish: "stop", images: ["image/png"] },
  },
  {
    name: "Markdown with a data URI in pieces",
    answer: sse(
      ...Array.from(`${words}![x](${uri})`, (content) => content).map((content) => chunk({ content })),
      chunk({}, "stop"),
      done,
    ),
    expected: { ...finished, images: ["image/png"] },
  },
  {
    name: "Markdown with a data URI that never ends",
    answer: sse(chunk({ content: `${words}![x](${uri.slice(0, 60)}` }), chunk({}, "stop"), done),
    expected: { ...finished, notices: ["A picture in the answer arrived incomplete and is left out."] },
  },
  {
    name: "a bare data URI",
    answer: sse(chunk({ content: `${words} ${uri} ok` }), chunk({}, "stop"), done),
    expected: { text: `${words}  ok`, finish: "stop", images: ["image/png"] },
  },
  {
    name: "a Markdown link to a picture",
    answer: sse(
      chunk({ content: `${words}![x](https://pictures.example/a_(1).png?x=1)` }),
      chunk({}, "stop"),
      done,
    ),
    expected: { text: `${words}![x](https://pictures.example/a_(1).png?x=1)`, finish: "stop" },
  },
  {
    name: "content parts with pictures",
    answer: json(
      whole({
        content: [
          { type: "text", text: words },
          { type: "image_url", image_url: { url: uri } },
          { type: "image_url", image_url: `data:image/gif;base64,${oneGif}` },
        ],
      }),
    ),
    expected: { ...finished, images: ["image/png", "image/gif"] },
  },
  {
    name: "the same picture in three shapes",
    answer: sse(
      chunk({ content: `${words}![x](${uri})` }),
      chunk({ images: [{ type: "image_url", image_url: { url: uri } }] }),
      chunk({ content: [{ type: "image_url", image_url: { url: uri } }] }, "stop"),
      done,
    ),
    expected: { ...finished, images: ["image/png"] },
  },
  {
    name: "a picture that is none",
    answer: sse(
      chunk({ content: words, images: [{ image_url: { url: "data:image/png;base64,aGVsbG8gd29ybGQ=" } }] }),
      chunk({}, "stop"),
      done,
    ),
    expected: {
      ...finished,
      notices: ["A picture in the answer was in no format that can be shown, and is left out."],
    },
  },
  {
    name: "a picture at a file address",
    answer: sse(
      chunk({ content: words, images: [{ image_url: { url: "file:///etc/passwd" } }] }),
      chunk({}, "stop"),
      done,
    ),
    expected: {
      ...finished,
      notices: [
        "A picture in the answer is on the disk of the model server, which only it can read, and is left out.",
      ],
    },
  },
  {
    name: "a broken item among the images",
    answer: sse(
      chunk({ content: words, images: [null, 3, { image_url: {} }, { image_url: { url: uri } }] }),
      chunk({}, "stop"),
      done,
    ),
    expected: { ...finished, images: ["image/png"] },
  },
  {
    name: "brackets that are no picture",
    answer: sse(
      chunk({ content: "if (![1,2].includes(x)) return !" }),
      chunk({ content: "y![" }),
      chunk({}, "stop"),
      done,
    ),
    expected: { text: "if (![1,2].includes(x)) return !y![", finish: "stop" },
  },
  {
    name: "Markdown for a picture inside code",
    answer: sse(
      chunk({
        content: "Write `![x](https://a.example/b.png)` so\n```\n![y](https://a.example/c.png)\n```\n",
      }),
      chunk({}, "stop"),
      done,
    ),
    expected: {
      text: "Write `![x](https://a.example/b.png)` so\n```\n![y](https://a.example/c.png)\n```\n",
      finish: "stop",
    },
  },
];
