import { type Backend, type Process, ZERO_TIME } from "../src/index.js";

/** A backend that does nothing. */
export const bare: Backend = { initialize: ({ root }) => ({ root }) };

/** A promise and what settles it. */
export function gate(): { promise: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

/** Rejects when the signal aborts. */
export const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

export const execute = { call: { name: "t", arguments: "{}" }, actor: "s" };

export const record: Process = {
  id: "p1",
  operation_id: "op",
  owner_kind: "main_agent",
  owner_id: "s",
  root_thread_id: "s",
  lifecycle: "session",
  status: "running",
  pid: 1,
  pgid: 1,
  command: "c",
  cwd: "/r",
  started_at: ZERO_TIME,
  updated_at: ZERO_TIME,
  stopped_at: ZERO_TIME,
  exit_code: -1,
};
