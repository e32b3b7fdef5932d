import { readFile } from "node:fs/promises";
import {
  DockerfileParser,
  From,
  JSONInstruction,
  type Copy,
  type Env,
  type Instruction,
} from "dockerfile-ast";

/** One instruction, as far as the tests carry it out. */
export type DockerStep =
  | { readonly kind: "workdir"; readonly path: string }
  | { readonly kind: "env"; readonly values: Readonly<Record<string, string>> }
  | {
      readonly kind: "copy";
      readonly from: string | undefined;
      readonly sources: readonly string[];
      readonly target: string;
      readonly owner: string | undefined;
    }
  | { readonly kind: "run"; readonly command: string }
  | { readonly kind: "user"; readonly user: string }
  | { readonly kind: "volume"; readonly path: string }
  | { readonly kind: "expose"; readonly port: string }
  | { readonly kind: "stopsignal"; readonly signal: string };

/** One stage of a Dockerfile. */
export interface DockerStage {
  readonly name: string | undefined;
  readonly image: string;
  readonly steps: readonly DockerStep[];
  /** The command in exec form. */
  readonly command: readonly string[] | undefined;
  readonly healthCheck: readonly string[] | undefined;
}

/** Reads a Dockerfile. @throws Error for an instruction that the tests do not know */
export async function readDockerfile(file: string): Promise<readonly DockerStage[]> {
  const parsed = DockerfileParser.parse(await readFile(file, "utf8"));
  const stages: (DockerStage & { readonly steps: DockerStep[] })[] = [];
  for (const instruction of parsed.getInstructions()) {
    if (instruction instanceof From) {
      stages.push({
        name: instruction.getBuildStage() ?? undefined,
        image: instruction.getImage() ?? "",
        steps: [],
        command: undefined,
        healthCheck: undefined,
      });
      continue;
    }
    const stage = stages.at(-1);
    if (stage === undefined) throw new Error("an instruction before FROM");
    const keyword = instruction.getKeyword();
    if (keyword === "CMD") Object.assign(stage, { command: execForm(instruction) });
    else if (keyword === "HEALTHCHECK") Object.assign(stage, { healthCheck: healthCommand(instruction) });
    else stage.steps.push(toStep(instruction));
  }
  return stages;
}

function toStep(instruction: Instruction): DockerStep {
  const words = instruction.getArguments().map((argument) => argument.getValue());
  const [first = ""] = words;
  const keyword = instruction.getKeyword();
  switch (keyword) {
    case "WORKDIR":
      return { kind: "workdir", path: first };
    case "ENV": {
      const properties = (instruction as Env).getProperties();
      const values = properties.map((property) => [property.getName(), property.getValue() ?? ""] as const);
      return { kind: "env", values: Object.fromEntries(values) };
    }
    case "COPY": {
      const flags = new Map(
        (instruction as Copy).getFlags().map((flag) => [flag.getName(), flag.getValue()]),
      );
      return {
        kind: "copy",
        from: flags.get("from") ?? undefined,
        owner: flags.get("chown") ?? undefined,
        sources: words.slice(0, -1),
        target: words.at(-1) ?? "",
      };
    }
    case "RUN":
      return { kind: "run", command: words.join(" ") };
    case "USER":
      return { kind: "user", user: first };
    case "VOLUME":
      return { kind: "volume", path: first };
    case "EXPOSE":
      return { kind: "expose", port: first };
    case "STOPSIGNAL":
      return { kind: "stopsignal", signal: first };
    default:
      throw new Error(`the tests do not know ${keyword}`);
  }
}

/** Returns the arguments of the exec form. @throws Error for the shell form, which passes no signals on */
function execForm(instruction: Instruction): string[] {
  const strings = instruction instanceof JSONInstruction ? instruction.getJSONStrings() : [];
  if (strings.length === 0) throw new Error(`${instruction.getKeyword()} is not in exec form`);
  return strings.map((argument) => argument.getJSONValue());
}

function healthCommand(instruction: Instruction): string[] {
  const text = instruction.getRawArgumentsContent() ?? "";
  const [, array] = /CMD\s+(\[.*\])\s*$/s.exec(text) ?? [];
  if (array === undefined) throw new Error("HEALTHCHECK is not in exec form");
  return JSON.parse(array) as string[];
}
