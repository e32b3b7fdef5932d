/** Runs in a store test: `append <url> <conversation> <writer> <from> <to>`, `open <url>`, `hold <url>`. */
import { isParleyError } from "../../src/core/errors.ts";
import { openStore } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";

const [task, url = "", conversationId = "", writer = "", from = "0", to = "0"] = process.argv.slice(2);

try {
  const store = await openStore(url, { log: silentLog, exclusive: task !== "append" });
  for (let n = Number(from); n < Number(to); n++) {
    const id = `${writer}-${n}`;
    await store.conversations.append(conversationId, {
      id,
      role: "user",
      turnKey: id,
      parts: [{ kind: "text", text: `${id} ${"lorem ".repeat(40)}` }],
      createdAt: n,
      estimatedTokens: 60,
    });
    process.stdout.write(`${id}\n`);
  }
  if (task === "hold") {
    process.stdout.write("held\n");
    await new Promise(() => setInterval(() => {}, 1000));
  }
  await store.close();
} catch (error) {
  process.stdout.write(`${isParleyError(error) ? `${error.code}: ${error.message}` : String(error)}\n`);
  process.exitCode = 3;
}
