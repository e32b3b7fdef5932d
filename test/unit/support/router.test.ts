import { expect, test } from "vitest";
import { createRouter } from "../../../src/support/http/server.ts";

const find = createRouter([
  { method: "GET", path: "/list", run: "list" },
  { method: "POST", path: "/list", run: "add" },
  { method: "GET", path: /^\/list\/(\d+)\/(\w+)$/, run: "part" },
  { method: "DELETE", path: /^\/list\/(\d+)$/, run: "remove" },
]);

test.each([
  ["GET", "/list", "list", []],
  ["HEAD", "/list", "list", []],
  ["POST", "/list", "add", []],
  ["GET", "/list/7/name", "part", ["7", "name"]],
  ["DELETE", "/list/7", "remove", ["7"]],
])("%s %s is served", (method, path, run, groups) => {
  expect(find(method, path)).toEqual({ kind: "route", run, groups });
});

test.each([
  ["PUT", "/list", "GET, POST"],
  ["GET", "/list/7", "DELETE"],
  ["HEAD", "/list/7", "DELETE"],
  ["get", "/list/7/name", "GET"],
  [undefined, "/list", "GET, POST"],
])("%s %s is another method than the path has", (method, path, allow) => {
  expect(find(method, path)).toEqual({ kind: "wrong-method", allow });
});

test.each(["/", "/list/", "/LIST", "/list/x", "/list/7/name/more", "/constructor", "/__proto__"])(
  "there is nothing at %s",
  (path) => {
    expect(find("GET", path)).toEqual({ kind: "nothing" });
  },
);
