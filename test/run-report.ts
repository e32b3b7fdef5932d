import type { Reporter, TestCase, TestModule } from "vitest/node";
import { has, requirements } from "./support/requirements.ts";
import { hasTwins, installCommand } from "./twins/installed.ts";

/** A test or file that still runs after so many milliseconds is named. */
const hangingAfterMs = 60_000;
const slowestShown = 10;

interface Running {
  readonly name: string;
  readonly startedAt: number;
  isNamed: boolean;
}

/**
 * Reports the last lines of a run: what failed, what this machine could not run, and how long the slowest
 * files took. During the run it names what has run for a minute. When the run is ended from outside, it names
 * what still runs.
 */
export default class RunReport implements Reporter {
  readonly #running = new Map<string, Running>();
  #timer: NodeJS.Timeout | undefined;

  onTestRunStart(): void {
    this.#timer = setInterval(() => this.#nameHanging(), hangingAfterMs / 4);
    this.#timer.unref();
    process.once("SIGTERM", this.#onEnded);
  }

  onTestModuleQueued(file: TestModule): void {
    this.#running.set(file.id, { name: nameOf(file), startedAt: performance.now(), isNamed: false });
  }

  onTestModuleEnd(file: TestModule): void {
    this.#running.delete(file.id);
  }

  onTestCaseReady(test: TestCase): void {
    // From its first test on, a file is known by the test that runs.
    this.#running.delete(test.module.id);
    const name = `${nameOf(test.module)} > ${test.fullName}`;
    this.#running.set(test.id, { name, startedAt: performance.now(), isNamed: false });
  }

  onTestCaseResult(test: TestCase): void {
    this.#running.delete(test.id);
  }

  onTestRunEnd(files: readonly TestModule[]): void {
    clearInterval(this.#timer);
    process.removeListener("SIGTERM", this.#onEnded);
    const lines = [...slowest(files), ...leftOut(), ...failures(files), counts(files)];
    console.log(lines.join("\n"));
  }

  readonly #onEnded = (): void => {
    for (const { name } of this.#running.values()) console.log(`running when the run was ended: ${name}`);
    process.exit(143);
  };

  #nameHanging(): void {
    for (const one of this.#running.values()) {
      const ms = performance.now() - one.startedAt;
      if (one.isNamed || ms < hangingAfterMs) continue;
      one.isNamed = true;
      console.log(`still running after ${Math.round(ms / 1000)} s: ${one.name}`);
    }
  }
}

function nameOf(file: TestModule): string {
  return file.relativeModuleId;
}

function testsOf(files: readonly TestModule[]): TestCase[] {
  return files.flatMap((file) => [...file.children.allTests()]);
}

function slowest(files: readonly TestModule[]): string[] {
  const timed = files.map((file) => ({ name: nameOf(file), ms: durationMs(file) }));
  return timed
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, slowestShown)
    .map(({ name, ms }) => `slowest: ${(ms / 1000).toFixed(1).padStart(6)} s  ${name}`);
}

/** Returns the duration with the time for loading the file and its imports. */
function durationMs(file: TestModule): number {
  const { duration, collectDuration, setupDuration } = file.diagnostic();
  return duration + collectDuration + setupDuration;
}

/** Returns which stories this machine could not tell, and what to install. */
function leftOut(): string[] {
  const missing = Object.entries(requirements).filter(([name]) => !has(name as keyof typeof requirements));
  return [
    ...missing.map(([, requirement]) => {
      const { program, stories } = requirement;
      const name = "package" in requirement ? requirement.package : program;
      return `left out: ${stories} (needs ${program}: apt-get install ${name})`;
    }),
    ...(hasTwins ? [] : [`left out: simulators of others (needs ${installCommand})`]),
  ];
}

function failures(files: readonly TestModule[]): string[] {
  const broken = files.filter((file) => file.errors().length > 0);
  const tests = testsOf(files).filter((test) => test.result().state === "failed");
  return [
    ...broken.map((file) => `failed: ${nameOf(file)}`),
    ...tests.map((test) => `failed: ${nameOf(test.module)} > ${test.fullName}`),
  ];
}

function counts(files: readonly TestModule[]): string {
  const states = testsOf(files).map((test) => test.result().state);
  const count = (state: string): number => states.filter((one) => one === state).length;
  const broken = files.filter((file) => file.errors().length > 0).length;
  return `${count("passed")} passed, ${count("failed") + broken} failed, ${count("skipped")} skipped`;
}
