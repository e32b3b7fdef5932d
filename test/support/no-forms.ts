import type { FormDesk } from "../../src/core/forms.ts";

/** Offers no forms. */
export const noForms: FormDesk = {
  offers: () => [],
  open: () => Promise.reject(new Error("no such form")),
  submit: () => Promise.reject(new Error("no such form")),
};
