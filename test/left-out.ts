import { hasOracle } from "./simulators/discord/openapi.ts";
import { has, requirements } from "./support/requirements.ts";

/** Says, once after every run, which stories this machine could not tell. */
export default function setup(): () => void {
  const missing = Object.entries(requirements).filter(([name]) => !has(name as keyof typeof requirements));
  return () => {
    for (const [, { program, stories }] of missing) {
      console.log(`left out: ${stories} (needs ${program}: apt-get install ${program})`);
    }
    if (!hasOracle) {
      console.log(
        "left out: checks of Discord's shapes (needs Discord's OpenAPI file at ../shared/oracles/discord-openapi.json)",
      );
    }
  };
}
