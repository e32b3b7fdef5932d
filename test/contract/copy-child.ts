/** Copies a store in a test: `<from> <to> <keys> <line>`. It is killed when it tells that line. 0: none. */
import { copyStore } from "../../src/conversations/copy-store.ts";
import { silentLog } from "../support/silent-log.ts";

const [from = "", to = "", keys = "", line = "0"] = process.argv.slice(2);
let told = 0;
await copyStore({
  from,
  to,
  encryptionKeys: keys.split(",").filter(Boolean),
  log: silentLog,
  tell() {
    told++;
    if (told === Number(line)) process.kill(process.pid, "SIGKILL");
  },
});
