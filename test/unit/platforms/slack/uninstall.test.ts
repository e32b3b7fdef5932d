import { expect, test } from "vitest";
import { createInstallations } from "../../../../src/platforms/slack/installations.ts";
import { createSharedChannels } from "../../../../src/platforms/slack/shared-channels.ts";
import { createUninstaller } from "../../../../src/platforms/slack/uninstall.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { createSlackReceiver } from "../../../support/slack-receiver.ts";

test("what is set for channels and people goes too, though their conversations go with the workspace", async () => {
  const receiver = createSlackReceiver();
  receiver.stored.add("slack:T1:C1:1700000000.000001").add("slack:T2:C1:1700000000.000002");
  receiver.placeDeleted = async (place) => {
    if (place === "slack:team:T1") receiver.stored.delete("slack:T1:C1:1700000000.000001");
    receiver.deletions.push(place);
  };
  const { records } = createSharedMemory();
  const shared = createSharedChannels(records);
  for (const team of ["T1", "T2"]) await shared.note("C1", team);
  const uninstaller = createUninstaller({
    installations: createInstallations(records),
    receiver,
    history: {
      conversations: (prefix) => receiver.conversations(prefix),
      history: () => Promise.resolve([]),
    },
    shared,
    forget: () => {},
    log: silentLog,
  });
  await uninstaller.ending({ team_id: "T1", event_time: 1, event: { type: "app_uninstalled" } })?.();
  expect(receiver.deletions).toEqual(
    expect.arrayContaining(["slack:team:T1", "slack:channel:T1:C1", "people slack:T1:"]),
  );
  expect([...receiver.stored]).toEqual(["slack:T2:C1:1700000000.000002"]);
  expect(await createSharedChannels(records).teamsIn("C1")).toEqual(["T2"]);
});
