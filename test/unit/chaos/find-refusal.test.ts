import { expect, test } from "vitest";
import { findRefusal } from "../../chaos/people/sent-message.ts";

const conditional = "The answer appears here if your command could be kept.";
const unconfirmed = "Slack did not confirm this answer.";
const refused = "Parley is restarting.";

test("what a person was told at last counts", () => {
  expect(findRefusal([conditional])?.reason).toBe("store");
  expect(findRefusal([conditional, "re #e1", unconfirmed])?.reason).toBe("unconfirmed");
  expect(findRefusal([conditional, unconfirmed, refused])?.reason).toBe("stopping");
  expect(findRefusal(["", "re #e1"])).toBeUndefined();
});
