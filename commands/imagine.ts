import { defineCommand, modelOption } from "../src/core/command.ts";
import { ParleyError } from "../src/core/errors.ts";
import { translate } from "../src/words/translate.ts";

const sizePattern = /^([1-9]\d{1,3})x([1-9]\d{1,3})$/;

export default defineCommand({
  name: "imagine",
  description: "Draw a picture from words, or change a picture you give",
  options: {
    prompt: {
      kind: "string",
      description: "What to draw, or what to change",
      required: true,
      maxChars: 4000,
    },
    image: { kind: "attachment", accepts: "image", description: "A picture to change" },
    model: modelOption("image"),
    size: { kind: "string", description: "Width x height in pixels, such as 1024x1024", maxChars: 9 },
    count: { kind: "integer", description: "How many pictures", min: 1, max: 4 },
  },
  visibility: "public",
  spends: "image",
  examples: ["/imagine a red fox in the snow", "/imagine a red fox size:1024x1024 count:2"],
  run: ({ options, services }) => {
    if (options.size !== undefined && !sizePattern.test(options.size)) {
      throw new ParleyError("invalid-option", "imagine: size is not <width>x<height>", {
        detail: {
          command: "imagine",
          option: "size",
          problem: translate("imagine.size"),
        },
      });
    }
    return services.draw(options);
  },
});
