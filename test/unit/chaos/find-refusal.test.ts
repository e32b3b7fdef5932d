import { expect, test } from "vitest";
import { acceptingNotice, toNotice } from "../../../src/core/error-messages.ts";
import { ParleyError } from "../../../src/core/errors.ts";
import { findRefusal } from "../../chaos/people/sent-message.ts";

const conditional = acceptingNotice();
const unconfirmed = "Slack did not confirm this answer.";
const refused = toNotice(new ParleyError("stopping", "the process is stopping"));

test("what a person was told at last counts", () => {
  expect(findRefusal([conditional])).toMatchObject({ reason: "store", isConditional: true });
  expect(findRefusal([conditional, "re #e1", unconfirmed])?.reason).toBe("unconfirmed");
  expect(findRefusal([conditional, unconfirmed, refused])?.reason).toBe("stopping");
  expect(findRefusal(["", "re #e1"])).toBeUndefined();
});
