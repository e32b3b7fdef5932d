import { defineCommand } from "../src/core/command.ts";
import type { Model } from "../src/core/gateway.ts";
import { describePrice } from "../src/core/usage.ts";
import { translate } from "../src/words/translate.ts";

const maxShown = 40;

export default defineCommand({
  name: "models",
  description: "List the models of the gateway and what they can do",
  options: {
    search: { kind: "string", description: "Part of a name", maxChars: 100 },
  },
  visibility: "private",
  examples: ["/models gpt"],
  run: async ({ options, services }) => {
    const { all, defaults } = await services.models();
    const wanted = options.search?.toLowerCase() ?? "";
    const found = all.filter((model) => model.id.toLowerCase().includes(wanted));
    const usual = new Map<string, string>();
    for (const [what, id] of Object.entries(defaults)) {
      const operation = translate(`operation.${what as keyof typeof defaults}`);
      usual.set(id, [usual.get(id), operation].filter((part) => part !== undefined).join(", "));
    }
    // Without a list there is nothing to say but what is in use.
    const shown = all.length > 0 ? found : [...usual.keys()].map((id) => ({ id, capabilities: {} }));
    const lines = shown.slice(0, maxShown).map((model) => toLine(model, usual.get(model.id)));
    const head =
      all.length === 0
        ? translate(lines.length === 0 ? "error.no-model.empty" : "models.unlisted")
        : found.length === 0
          ? translate("models.none", {
              search: `\`${(options.search ?? "").replaceAll("`", "")}\``,
              all: all.length,
            })
          : translate(wanted === "" ? "models.all" : "models.match", {
              found: found.length,
              all: all.length,
            });
    const rest =
      found.length > maxShown ? [translate("models.more", { count: found.length - maxShown })] : [];
    return await services.say([head, ...lines, ...rest].join("\n"));
  },
});

function toLine(model: Model, usual: string | undefined): string {
  const { capabilities } = model;
  const can = [
    capabilities.chats === true ? translate("models.chats") : "",
    capabilities.seesImages === true ? translate("models.sees") : "",
    capabilities.generatesImages === true || capabilities.drawsInChat === true
      ? translate("models.draws")
      : "",
    capabilities.transcribes === true ? translate("models.transcribes") : "",
    model.price === undefined ? "" : describePrice(model.price),
  ].filter((part) => part !== "");
  const marks = usual === undefined ? "" : ` **${translate("models.usual", { operations: usual })}**`;
  return `- \`${model.id}\`${can.length === 0 ? "" : `: ${can.join(", ")}`}${marks}`;
}
