import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { parseConfig } from "../../../src/config.ts";
import { settings } from "../../../src/settings.ts";
import { storeUrlProblem } from "../../../src/conversations/backends.ts";
import { readDockerfile } from "../../support/dockerfile.ts";

interface Service {
  readonly image?: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly command?: string;
  readonly healthcheck?: { readonly test: string };
  readonly restart?: string;
  readonly stop_grace_period?: string;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

const read = async (file: string): Promise<Compose> => parse(await readFile(file, "utf8")) as Compose;

describe.each([
  ["deploy/compose.yaml", "redis", "redis:"],
  ["deploy/compose.postgres.yaml", "postgres", "postgres:"],
])("%s", (file, store, protocol) => {
  test("runs the Dockerfile's image without rights, and stops later than Parley gives up", async () => {
    const { parley } = (await read(file)).services;
    expect(parley).toMatchObject({
      build: { context: "..", dockerfile: "deploy/Dockerfile" },
      read_only: true,
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
      restart: "unless-stopped",
    });
    const graceMs = Number(parley?.stop_grace_period?.replace("s", "")) * 1000;
    expect(graceMs).toBeGreaterThan(parseConfig({}).SHUTDOWN_TIMEOUT_MS + 5000);
  });

  test("sets settings that there are, and publishes no port to other machines", async () => {
    const { parley } = (await read(file)).services;
    const names = Object.keys(parley?.environment ?? {});
    expect(names.filter((name) => !Object.hasOwn(settings, name))).toEqual([]);
    for (const port of parley?.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
  });

  test("has a store that is waited for, keeps its data, and is the one that Parley is given", async () => {
    const { services, volumes } = await read(file);
    const url = new URL(
      String(services["parley"]?.environment?.["STORE_URL"]).replace(/\$\{.*?\}/, "password"),
    );
    expect([url.protocol, url.hostname]).toEqual([protocol, store]);
    expect(storeUrlProblem(url.href)).toBeUndefined();
    expect(services["parley"]?.depends_on).toEqual({ [store]: { condition: "service_healthy" } });
    expect(services[store]?.healthcheck?.test).toBeDefined();
    expect(services[store]?.ports).toBeUndefined();
    const mounted = Object.values(services).flatMap((service) => service.volumes ?? []);
    expect(new Set(mounted.map((mount) => mount.split(":")[0]))).toEqual(new Set(Object.keys(volumes)));
  });
});

test("Redis keeps what was acknowledged and evicts nothing", async () => {
  const { command } = (await read("deploy/compose.yaml")).services["redis"]!;
  expect(command).toContain("--appendonly yes");
  expect(command).toContain("--appendfsync always");
  expect(command).toContain("--maxmemory-policy noeviction");
});

describe("the Dockerfile", () => {
  test("has two stages, and runs the last one as a user without rights", async () => {
    const stages = await readDockerfile("deploy/Dockerfile");
    expect(stages.map(({ name }) => name)).toEqual(["packages", undefined]);
    const last = stages.at(-1)!;
    const users = last.steps.flatMap((step) => (step.kind === "user" ? [step.user] : []));
    expect(users).toEqual(["1000:1000"]);
    expect(last.steps.at(-1)).toEqual({ kind: "stopsignal", signal: "SIGTERM" });
    expect([last.command, last.healthCheck?.[0]]).toEqual([["node", "src/launch.js"], "node"]);
    const engines = (JSON.parse(await readFile("package.json", "utf8")) as { engines: { node: string } })
      .engines;
    for (const { image } of stages)
      expect(image).toMatch(new RegExp(`^node:${/\d+/.exec(engines.node)?.[0]}\\b`));
  });

  test("sets settings that there are and copies what .dockerignore lets through", async () => {
    const [first, last] = await readDockerfile("deploy/Dockerfile");
    const names = (last?.steps ?? []).flatMap((step) =>
      step.kind === "env" ? Object.keys(step.values) : [],
    );
    expect(names.filter((name) => name !== "NODE_ENV" && !Object.hasOwn(settings, name))).toEqual([]);
    const ignore = (await readFile("deploy/Dockerfile.dockerignore", "utf8")).split("\n");
    const passed = ignore.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
    const copied = (first?.steps ?? []).flatMap((step) => (step.kind === "copy" ? step.sources : []));
    expect(copied.sort()).toEqual(passed.sort());
  });
});
