import { findDamageIn } from "./integrity.ts";

// Checks the file that its argument names, for `integrity-check.ts`; prints what is wrong as a JSON list.
const [, , file = ""] = process.argv;
process.stdout.write(JSON.stringify(findDamageIn(file)));
