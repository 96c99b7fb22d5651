/** Limits of the protocol and of the kit, each with its unit and its reason. */

/** The protocol version that this kit speaks; any other one is refused. */
export const VERSION = 4;

/**
 * The longest frame in bytes, its newline included. A longer one is never sent,
 * and one that comes in ends the connection.
 */
export const MAX_FRAME = 16 * 1024 * 1024;

/** The most raw bytes that follow one frame (`caisson.bulk.v1`). */
export const MAX_RAW = 1024 * 1024;

/** The longest body that is collected in memory, in bytes (`caisson.bulk.v1`). */
export const MAX_BODY = 64 * 1024 * 1024;

/** How far the sender of a body may be ahead of its receiver, in bytes. */
export const BODY_WINDOW = 4 * 1024 * 1024;

/** How much of a body one frame carries, in bytes: other frames hardly wait for it. */
export const BODY_PIECE = 256 * 1024;

/** How many bytes a peer may print before its first frame: a login banner. */
export const MAX_BANNER = 64 * 1024;

/** The shortest token that protects a connection, in characters. */
export const MIN_TOKEN = 32;

/** The most content bytes in one reply to `export/read`. */
export const EXPORT_CHUNK = 256 * 1024;

/** The largest file that `present_artifact` may name, in bytes. */
export const MAX_EXPORT = 256 * 1024 * 1024;

/** How many requests run at once. Waits for process output count. */
export const MAX_REQUESTS = 256;

/** How many bytes of request data and bodies are held at once. */
export const MAX_PENDING = 2 * MAX_BODY;

/** How many callbacks of programs wait for the host's answer at once. */
export const MAX_CALLBACKS = 1024;

/**
 * How many events and refusals wait for a host that does not read. It can learn
 * all of it again, so beyond that the connection ends rather than one is dropped.
 */
export const MAX_WAITING = 4096;

/** How deep JSON may nest: what is deeper is sent to exhaust a parser. */
export const MAX_DEPTH = 1000;

/** The longest text of an error that comes from a peer, in characters. */
export const MAX_MESSAGE = 8192;

/** How many bytes of a line that is no frame an error quotes. */
export const QUOTED_HEAD = 160;

/** The most parts in one tool result. */
export const MAX_PARTS = 128;

/** The most inline data in one tool result, in bytes. */
export const MAX_INLINE = 2 * 1024 * 1024;

/** The most bytes in one tool result, as it is encoded. */
export const MAX_RESULT = 3 * 1024 * 1024;

/** How long a cancelled request of a delegate may take to end, in milliseconds. */
export const CANCEL_GRACE_MS = 35_000;

/** How long a delegate's peer may take for its own clean exit, in milliseconds. */
export const SHUTDOWN_GRACE_MS = 10_000;

/** The longest time that can be asked for anywhere, in milliseconds. */
export const MAX_TIMEOUT_MS = 2_147_483_647;

/** The host's budget from the end of input to the exit of an adapter, in milliseconds. */
export const SHUTDOWN_TIMEOUT_MS = 60_000;

/** How long the last replies may take to be written once every handler has ended, in milliseconds. */
export const FLUSH_GRACE_MS = 1000;
