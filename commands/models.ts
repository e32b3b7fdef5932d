import { defineCommand } from "../src/core/command.ts";
import type { Model } from "../src/core/gateway.ts";

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
      usual.set(id, [usual.get(id), what].filter((part) => part !== undefined).join(", "));
    }
    const lines = found.slice(0, maxShown).map((model) => toLine(model, usual.get(model.id)));
    const head =
      found.length === 0
        ? `No model has \`${(options.search ?? "").replaceAll("`", "")}\` in its name; there are ${all.length} in all.`
        : `${found.length} of ${all.length} models${wanted === "" ? "" : " match"}:`;
    const rest =
      found.length > maxShown
        ? [`…and ${found.length - maxShown} more. Narrow it: /models <part of a name>`]
        : [];
    await services.say([head, ...lines, ...rest].join("\n"));
  },
});

function toLine(model: Model, usual: string | undefined): string {
  const { capabilities } = model;
  const can = [
    capabilities.chats === true ? "chats" : "",
    capabilities.seesImages === true ? "sees pictures" : "",
    capabilities.generatesImages === true || capabilities.drawsInChat === true ? "draws" : "",
    capabilities.transcribes === true ? "transcribes" : "",
    model.price ?? "",
  ].filter((part) => part !== "");
  const marks = usual === undefined ? "" : ` **(usual for ${usual})**`;
  return `- \`${model.id}\`${can.length === 0 ? "" : `: ${can.join(", ")}`}${marks}`;
}
