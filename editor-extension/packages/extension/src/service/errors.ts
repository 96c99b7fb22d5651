import type { ErrorData, Kind } from "@caisson/protocol";

/**
 * An error of the service, or of reaching it: a sentence that a person can act on
 * and, where there is one, what to do next.
 */
export class ServiceError extends Error {
  override readonly name = "ServiceError";

  constructor(
    message: string,
    readonly data: Partial<ErrorData> = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  get kind(): Kind | undefined {
    return this.data.kind;
  }

  get hint(): string | undefined {
    return this.data.hint;
  }

  /** Whether somebody, or the end of the window, cancelled it: nothing to tell. */
  get cancelled(): boolean {
    return this.data.kind === "cancelled";
  }
}

/** Makes a ServiceError of whatever was thrown. */
export function serviceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) {
    return thrown;
  }
  if (thrown instanceof Error) {
    return new ServiceError(thrown.message, {}, { cause: thrown });
  }
  return new ServiceError(String(thrown));
}

/** Whether it is what the service says beside an error's message. */
export function isErrorData(data: unknown): data is ErrorData {
  return typeof data === "object" && data !== null && "retryable" in data;
}
