import { defineCommand } from "../src/core/command.ts";
import { isSettingName, settingNames, type Layer } from "../src/core/layered-settings.ts";
import { translate } from "../src/words/translate.ts";

const layerOf: Readonly<Record<string, Layer>> = {
  me: "person",
  here: "conversation",
  channel: "channel",
  server: "server",
  workspace: "server",
};

export default defineCommand({
  name: "settings",
  description: "See the settings that apply here, and change them",
  options: {
    name: { kind: "string", choices: settingNames, description: "Which setting" },
    value: {
      kind: "string",
      maxChars: 3000,
      completes: "setting-values",
      description: "Its new value; default removes it",
    },
    for: {
      kind: "string",
      choices: Object.keys(layerOf),
      description: "Who it is for: you, this conversation, or a place that you manage",
    },
  },
  visibility: "private",
  run: async ({ options, services }) => {
    const { name, value, for: whom } = options;
    const setting = name !== undefined && isSettingName(name) ? name : undefined;
    if (setting !== undefined && value !== undefined) {
      const layer = whom === undefined ? undefined : layerOf[whom];
      return await services.say(await services.changeSetting({ name: setting, value, layer }), {
        isStored: false,
      });
    }
    const { markdown, forms } = await services.describeSettings(setting);
    const hint =
      setting === undefined
        ? translate("settings.hint")
        : translate("settings.hint.one", { command: `\`/settings name:${setting} value:… for:…\`` });
    return await services.say(`${markdown}\n\n${hint}`, { isStored: false, forms });
  },
});
