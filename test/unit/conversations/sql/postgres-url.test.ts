import { describe, expect, it } from "vitest";
import { postgresStore } from "../../../../src/conversations/sql/postgres-store.ts";
import { parsePostgresUrl } from "../../../../src/conversations/sql/postgres-url.ts";

describe("a Postgres URL", () => {
  it("names the schema and the number of connections, which the driver does not see", () => {
    expect(parsePostgresUrl("postgres://u:p@host:5433/db?schema=bots&pool_max=4&application_name=x")).toEqual(
      {
        connectionString: "postgres://u:p@host:5433/db?application_name=x",
        host: "host",
        schema: "bots",
        maxConnections: 4,
        tls: "prefer",
      },
    );
    expect(parsePostgresUrl("postgresql://host/db")).toMatchObject({ schema: "parley", maxConnections: 10 });
  });

  it.each([
    ["postgres://127.0.0.1/db", "off"],
    ["postgres://localhost/db", "off"],
    ["postgres://[::1]/db", "off"],
    ["postgres://user@/db?host=/run/postgresql", "off"],
    ["postgres:///db?host=/run/postgresql", "off"],
    ["postgres://db.example.com/db", "prefer"],
    ["postgres://db.example.com/db?sslmode=prefer", "prefer"],
    ["postgres://db.example.com/db?sslmode=disable", "off"],
    ["postgres://localhost/db?sslmode=require", "from-url"],
    ["postgres://db.example.com/db?sslmode=verify-full", "from-url"],
    ["postgres://db.example.com/db?sslrootcert=/etc/ca.pem", "from-url"],
  ])("%s is encrypted: %s", (url, tls) => {
    expect(postgresStore.checkUrl(url)).toBeUndefined();
    expect(parsePostgresUrl(url).tls).toBe(tls);
  });

  it("keeps the form that names a socket", () => {
    expect(parsePostgresUrl("postgres://user@/db?host=/run/postgresql").connectionString).toBe(
      "postgres://user@/db?host=%2Frun%2Fpostgresql",
    );
  });

  it.each([
    ["postgres://host1,host2/db", "one server"],
    ["postgres://host/db?schema=Parley", "lower-case"],
    ["postgres://host/db?schema=", "lower-case"],
    ['postgres://host/db?schema=a"b', "lower-case"],
    ["postgres://host/db?pool_max=2", "pool_max"],
    ["postgres://host/db?pool_max=many", "pool_max"],
    ["postgres://host/db?sslmode=on", "sslmode"],
    ["postgres://host/db?sslmode=verify-ca", "sslrootcert"],
  ])("%s is refused", (url, words) => {
    expect(postgresStore.checkUrl(url)).toContain(words);
  });
});
