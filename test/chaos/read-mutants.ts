import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { faultCounts, type FaultCount } from "./account/account.ts";
import { faultNames, type FaultName } from "./faults/faults.ts";

/** A change of the sources that breaks a promise, and the run of chaos that should show it. */
export interface Mutant {
  readonly name: string;
  /** The patch, for `patch -p1`. */
  readonly file: string;
  readonly breaks: string;
  readonly caughtBy: readonly FaultCount[];
  /** The later layer that makes up for it, where chaos cannot show it. */
  readonly madeUpForBy: string | undefined;
  readonly stores: readonly ("redis" | "sqlite")[];
  readonly only: readonly FaultName[];
  readonly faults: number;
}

/** Reads the patches beside this file. @throws Error for a header that is not complete */
export async function readMutants(): Promise<Mutant[]> {
  const folder = join(import.meta.dirname, "mutants");
  const files = (await readdir(folder)).filter((name) => name.endsWith(".patch")).toSorted();
  return Promise.all(files.map((name) => readMutant(join(folder, name), name.replace(/\.patch$/, ""))));
}

async function readMutant(file: string, name: string): Promise<Mutant> {
  const text = await readFile(file, "utf8");
  const field = (title: string): string | undefined => new RegExp(`^${title}: (.+)$`, "m").exec(text)?.[1];
  const required = (title: string): string => {
    const value = field(title);
    if (value === undefined) throw new Error(`${name}.patch has no line "${title}:"`);
    return value;
  };
  const store = required("Store");
  return {
    name,
    file,
    breaks: required("Breaks"),
    caughtBy: oneOf(faultCounts, required("Caught by"), name),
    madeUpForBy: field("Made up for by"),
    stores: store === "both" ? ["redis", "sqlite"] : oneOf(["redis", "sqlite"], store, name),
    only: oneOf(faultNames, required("Only"), name),
    faults: Number(required("Faults")),
  };
}

/** Reads a comma list of known words. */
function oneOf<T extends string>(known: readonly T[], list: string, name: string): T[] {
  return list.split(/,\s*/).map((word) => {
    const found = known.find((one) => one === word);
    if (found === undefined) throw new Error(`${name}.patch: unknown word ${word}`);
    return found;
  });
}
