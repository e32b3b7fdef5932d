import { ParleyError } from "../core/errors.ts";
import { nearestName } from "./text.ts";

/** The error for a command that does not exist, with the command that was probably meant. */
export function unknownCommand(name: string, known: Iterable<string>): ParleyError {
  const names = [...known];
  const suggestion = nearestName(name, names);
  return new ParleyError("unknown-command", "no such command", {
    detail: {
      command: name,
      commands: names.map((one) => `/${one}`).join(", "),
      ...(suggestion === undefined ? {} : { suggestion }),
    },
  });
}
