/** What a listener's registration gives: dispose ends it. */
export interface Disposable {
  dispose(): void;
}

/** Registers a listener. */
export type Event<T> = (listener: (value: T) => void) => Disposable;

/**
 * An event with any number of listeners. It has the shape of the editor's own, so
 * that what uses it needs no editor to be tested.
 */
export class Emitter<T> implements Disposable {
  private readonly listeners = new Set<(value: T) => void>();

  constructor(
    /** Is told what a listener threw: the others, and whoever fires, have nothing to do with it. */
    private readonly failed: (thrown: unknown) => void = (thrown) => console.error(thrown),
  ) {}

  readonly event: Event<T> = (listener) => {
    // Each registration is one of its own, also of the same function.
    const own = (value: T) => listener(value);
    this.listeners.add(own);
    return { dispose: () => void this.listeners.delete(own) };
  };

  /** Calls every listener that is registered now. */
  fire(value: T): void {
    for (const listener of [...this.listeners]) {
      try {
        listener(value);
      } catch (thrown) {
        this.failed(thrown);
      }
    }
  }

  dispose(): void {
    this.listeners.clear();
  }
}
