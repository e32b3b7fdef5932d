/** Why a server cannot listen, and what to do. `variable` names the setting of the port. */
export function listenFailure(error: unknown, variable: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "EADDRINUSE":
      return `another program listens there; stop it, or set ${variable} to another number (0 binds any free port)`;
    case "EACCES":
      return "the port needs more privileges; use one above 1023";
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return "this machine has no such address";
    default:
      return message;
  }
}
