import { workerData } from "node:worker_threads";
import { adoptProxies } from "../../src/support/proxy.ts";

// This is the entry of a thread, in which discord.js is not loaded yet, as at Parley's start.
adoptProxies({ HTTP_PROXY: (workerData as { readonly proxy: string }).proxy });
const { Client } = await import("discord.js");
const bot = new Client({ intents: [], rest: { api: "http://discord.test/api" } });
await bot.login("a.b.c");
