import { has, requirements } from "./support/requirements.ts";
import { hasTwins, installCommand } from "./twins/installed.ts";

/** Says, once after every run, which stories this machine could not tell. */
export default function setup(): () => void {
  const missing = Object.entries(requirements).filter(([name]) => !has(name as keyof typeof requirements));
  return () => {
    for (const [, requirement] of missing) {
      const { program, stories } = requirement;
      const name = "package" in requirement ? requirement.package : program;
      console.log(`left out: ${stories} (needs ${program}: apt-get install ${name})`);
    }
    if (!hasTwins) console.log(`left out: simulators of others (needs ${installCommand})`);
  };
}
