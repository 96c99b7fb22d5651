import type { Disposable, Event } from "../service/emitter.js";

/**
 * Gives what probe finds, at once or after one of the changes; undefined when nothing
 * was found by the end of the time, in ms.
 */
export async function soon<T>(
  probe: () => T | undefined,
  changes: Event<unknown>,
  atMost: number,
): Promise<T | undefined> {
  const now = probe();
  if (now !== undefined) {
    return now;
  }
  let listening: Disposable | undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<T | undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), atMost);
      listening = changes(() => {
        const found = probe();
        if (found !== undefined) {
          resolve(found);
        }
      });
    });
  } finally {
    clearTimeout(timer);
    listening?.dispose();
  }
}
