import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

/** A part of Discord's document. It is committed so that the checks run on every machine. */
const file = new URL("../../fixtures/discord-openapi/openapi.json", import.meta.url);

interface Operation {
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: object }>> }>
  >;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Loaded {
  readonly document: Document;
  readonly ajv: Ajv2020;
  readonly compiled: Map<string, ValidateFunction>;
}

let loaded: Loaded | undefined;

function load(): Loaded {
  if (loaded !== undefined) return loaded;
  const document = JSON.parse(readFileSync(file, "utf8")) as Document;
  const ajv = new Ajv2020({ strict: false, allErrors: false });
  ajv.addFormat("int32", {
    type: "number",
    validate: (value) => Number.isInteger(value) && Math.abs(value) <= 2 ** 31,
  });
  ajv.addFormat("int64", { type: "number", validate: (value) => Number.isInteger(value) });
  ajv.addFormat("double", { type: "number", validate: (value) => Number.isFinite(value) });
  ajv.addFormat("snowflake", (value: string) => /^\d{1,20}$/.test(value));
  ajv.addFormat("nonce", (value: string) => value.length <= 25);
  ajv.addFormat("uri", (value: string) => URL.canParse(value));
  ajv.addFormat("date-time", (value: string) => !Number.isNaN(Date.parse(value)));
  ajv.addSchema(document, "discord");
  loaded = { document, ajv, compiled: new Map() };
  return loaded;
}

/** Checks that the document has a route, whose bodies would be unchecked otherwise. @throws Error if not */
export function requireOperation(template: string, method: string): void {
  if (load().document.paths[template]?.[method.toLowerCase()] !== undefined) return;
  throw new Error(
    `there is no ${method} ${template} in test/fixtures/discord-openapi/openapi.json: add it in make.ts beside it`,
  );
}

/**
 * Validates a body against the OpenAPI schema of an operation. `part` is `request` or a status.
 * @returns what is invalid, or `undefined` if the body is valid or has no schema
 */
export function checkShape(
  template: string,
  method: string,
  part: "request" | number,
  body: unknown,
): string | undefined {
  const { document, ajv, compiled } = load();
  const verb = method.toLowerCase();
  const operation = document.paths[template]?.[verb];
  if (operation === undefined) return `there is no ${method} ${template}`;
  const place = part === "request" ? ["requestBody"] : ["responses", String(part)];
  const described =
    part === "request" ? operation.requestBody?.content : operation.responses[String(part)]?.content;
  if (described?.["application/json"] === undefined) return undefined;
  const pointer = ["paths", template, verb, ...place, "content", "application/json", "schema"]
    .map((word) => encodeURIComponent(word.replaceAll("~", "~0").replaceAll("/", "~1")))
    .join("/");
  let validate = compiled.get(pointer);
  if (validate === undefined) {
    validate = ajv.compile({ $ref: `discord#/${pointer}` });
    compiled.set(pointer, validate);
  }
  if (validate(body)) return undefined;
  const errors = (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
  return `${method} ${template} ${part}: ${errors.join("; ").slice(0, 600)}`;
}
