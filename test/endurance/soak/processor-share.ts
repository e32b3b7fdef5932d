import { readdirSync, readFileSync } from "node:fs";

/** Linux counts processor time in hundredths of a second. */
const tickMs = 10;

/** The processor time of everything that runs on this machine. */
function machineMs(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = readFileSync(
    "/proc/stat",
    "utf8",
  )
    .split("\n", 1)[0]!
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq + steal) * tickMs;
}

/** The processor time of a process and its descendants, also of those that have ended. */
function familyMs(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Its own time and that of the children that have ended stand behind a name that may hold anything.
    const times = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 15);
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean),
    );
    return children.reduce(
      (sum, child) => sum + familyMs(Number(child)),
      times.reduce((sum, time) => sum + Number(time) * tickMs, 0),
    );
  } catch (error) {
    // It ended meanwhile, and its parent counts it.
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return 0;
    throw error;
  }
}

/** How long the main thread of a process has run, and how long it has waited for a processor. */
function threadMs(pid: number): { readonly ran: number; readonly waited: number } {
  const [ran = 0, waited = 0] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8")
    .split(" ")
    .map(Number);
  return { ran: ran / 1e6, waited: waited / 1e6 };
}

/**
 * Measures from now on by which factor other programs than this test and its processes slow the main thread
 * of a process (Linux). It waits for a processor while others run, and they have their share in that.
 */
export function measureSlowdown(pid: number): () => number {
  const read = () => ({ ...threadMs(pid), machine: machineMs(), family: familyMs(process.pid) });
  const before = read();
  return () => {
    const now = read();
    const ran = now.ran - before.ran;
    const machine = now.machine - before.machine;
    const others = Math.max(0, machine - (now.family - before.family));
    return 1 + ((now.waited - before.waited) / ran) * Math.min(1, others / (machine - ran));
  };
}
