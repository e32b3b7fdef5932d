import { expect, test } from "vitest";
import { teamsOfPayload } from "../../../../src/platforms/slack/payload-teams.ts";

const ids = (body: Record<string, unknown>) => teamsOfPayload(body).map(({ teamId }) => teamId);

test("an event is that of its authorization, whoever wrote it", () => {
  const body = {
    type: "event_callback",
    team_id: "T2",
    authorizations: [{ team_id: "T1", enterprise_id: "E1", is_enterprise_install: true }],
  };
  expect(teamsOfPayload(body)).toEqual([
    { teamId: "T1", enterpriseId: "E1" },
    { teamId: "T2", enterpriseId: "E1" },
  ]);
});

test("a submitted form is that of the workspace where the app is installed, before the person's", () => {
  expect(
    ids({
      type: "view_submission",
      view: { app_installed_team_id: "T1" },
      team: { id: "T2" },
      user: { team_id: "T3" },
    }),
  ).toEqual(["T1", "T2", "T3"]);
});

test("with an installation of an organisation a button names no workspace but the person's", () => {
  expect(
    teamsOfPayload({ type: "block_actions", team: null, enterprise: { id: "E1" }, user: { team_id: "T1" } }),
  ).toEqual([{ teamId: "T1", enterpriseId: "E1" }]);
});

test("other payloads name none", () => {
  for (const body of [{}, { authorizations: [null] }, { team: "T1", user: 3, view: [] }])
    expect(ids(body)).toEqual([]);
});
