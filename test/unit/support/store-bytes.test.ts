import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { bytesOfFolder, holds } from "../../support/store-bytes.ts";

it("a text that is kept all the time is found while SQLite moves it from its log to the database", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "parley-bytes-"));
  const database = new DatabaseSync(path.join(folder, "parley.db"));
  database.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE kept (text)");
  database.exec("INSERT INTO kept VALUES ('a red fox')");
  const missed: number[] = [];
  for (let round = 0; round < 300; round += 1) {
    const reading = bytesOfFolder(folder);
    // SQLite goes on at another moment of the reading in each round.
    for (let wait = 0; wait < round % 30; wait += 1) await setImmediate();
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    if (!holds(await reading, "a red fox")) missed.push(round);
    database.exec(
      "DELETE FROM kept; PRAGMA wal_checkpoint(TRUNCATE); VACUUM; PRAGMA wal_checkpoint(TRUNCATE)",
    );
    database.exec("INSERT INTO kept VALUES ('a red fox')");
  }
  database.close();
  await rm(folder, { recursive: true });
  expect(missed).toEqual([]);
});
