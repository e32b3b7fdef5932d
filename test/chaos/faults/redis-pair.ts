import { createClient } from "redis";
import { sleep } from "../../../src/support/clock.ts";
import { startRedis, type RedisServer } from "../../support/redis-server.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

const pollMs = 20;

type Admin = ReturnType<typeof createClient>;

/** A Redis behind one address, and a second one that can take its place. */
export interface RedisPair {
  readonly url: string;
  /** Returns the server behind the address. */
  primary(): RedisServer;
  /** Sets another password for a while. Connections are closed. */
  changePassword(forMs: number): Promise<void>;
  /** Makes every write fail for a while, as without memory. */
  runOutOfMemory(forMs: number): Promise<void>;
  /**
   * Makes the other server the primary, and the old one crash. The new one has every acknowledged write,
   * since writes are held until it has caught up.
   */
  failOver(): Promise<void>;
  remove(): Promise<void>;
}

/** Starts both servers. The second one is connected only for a failover. */
export async function startRedisPair(): Promise<RedisPair> {
  const servers = await Promise.all([startRedis(), startRedis()]);
  let [primary, standby] = servers;
  const proxy = await startTcpProxy(primary.port);

  async function asAdmin<T>(server: RedisServer, work: (admin: Admin) => Promise<T>): Promise<T> {
    const admin: Admin = createClient({ url: server.url });
    // Each command reports its own failure.
    admin.on("error", () => {});
    await admin.connect();
    try {
      return await work(admin);
    } finally {
      admin.destroy();
    }
  }

  const infoOf = async (admin: Admin, field: string): Promise<string | undefined> =>
    new RegExp(`^${field}:(.*)$`, "m").exec(await admin.info("replication"))?.[1]?.trim();

  return {
    url: `redis://127.0.0.1:${proxy.port}`,
    primary: () => primary,
    changePassword: (forMs) =>
      asAdmin(primary, async (admin) => {
        await admin.sendCommand(["CONFIG", "SET", "requirepass", "changed"]);
        await admin.sendCommand(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        await sleep(forMs);
        await admin.sendCommand(["CONFIG", "SET", "requirepass", ""]);
      }),
    runOutOfMemory: (forMs) =>
      asAdmin(primary, async (admin) => {
        await admin.sendCommand(["CONFIG", "SET", "maxmemory", "1"]);
        await sleep(forMs);
        await admin.sendCommand(["CONFIG", "SET", "maxmemory", "0"]);
      }),
    async failOver() {
      const [old, next] = [primary, standby];
      await asAdmin(next, async (replica) => {
        await replica.sendCommand(["REPLICAOF", "127.0.0.1", String(old.port)]);
        while ((await infoOf(replica, "master_link_status")) !== "up") await sleep(pollMs);
        await asAdmin(old, async (master) => {
          await master.sendCommand(["CLIENT", "PAUSE", "600000", "WRITE"]);
          const offset = await infoOf(master, "master_repl_offset");
          while (Number(await infoOf(replica, "slave_repl_offset")) < Number(offset)) await sleep(pollMs);
        });
        await replica.sendCommand(["REPLICAOF", "NO", "ONE"]);
      });
      proxy.switchTo(next.port);
      [primary, standby] = [next, old];
      await old.kill();
      await old.start();
    },
    async remove() {
      await proxy.close();
      await Promise.all(servers.map((server) => server.remove()));
    },
  };
}
