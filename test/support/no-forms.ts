import type { Form, FormOffer, Press, PressResult } from "../../src/core/press.ts";

/** The forms of settings that a receiver in place of the assistant offers. */
export interface FakeForms {
  offers(conversationId: string | undefined): readonly FormOffer[];
  open(key: string): Promise<Form>;
  submit(key: string, values: Readonly<Record<string, string>>): Promise<PressResult>;
}

/** These offer no forms. */
export const noForms: FakeForms = {
  offers: () => [],
  open: () => Promise.reject(new Error("no such form")),
  submit: () => Promise.reject(new Error("no such form")),
};

/** Returns the result of a `settings` press. */
export async function pressForm(forms: FakeForms, { key, values }: Press): Promise<PressResult> {
  return values === undefined
    ? { kind: "form", form: await forms.open(key) }
    : await forms.submit(key, values);
}
