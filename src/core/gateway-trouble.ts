import type { ParleyError } from "./errors.ts";

/** What keeps a gateway from answering anybody. */
export type TroubleKind =
  | "unreachable"
  | "key-refused"
  | "web-page"
  | "no-model"
  | "unpaid"
  | "failing"
  | "busy";

/** Something that keeps the gateway from answering, not only one request. */
export interface GatewayTrouble {
  readonly kind: TroubleKind;
  /** For operators, after the gateway's name: `refuses the key (401)`. No secrets. */
  readonly text: string;
  /** The error that people read who ask meanwhile. */
  readonly error: ParleyError;
  /** How long it counts where nothing else is learnt, in milliseconds. 0: it is asked for again soon. */
  readonly holdsMs: number;
}

/** Whether the gateway answers, for those who show it to people. */
export interface GatewayOutlook {
  /** The error that keeps it from answering now. `undefined`: none that is known. */
  trouble(): ParleyError | undefined;
  /** Calls `listener` when a trouble begins, becomes another one or is over, until the returned function is called. */
  onChange(listener: () => void): () => void;
  /** Asks the gateway where what is known is old; the answer is a change. */
  look(): void;
}
