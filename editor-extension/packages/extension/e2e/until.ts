/** How long a condition of a busy workbench may take, in ms. */
const longest = 90_000;

/** How often it is looked at, in ms. */
const interval = 50;

/**
 * Waits until probe gives a value, and returns it. A probe that fails has no value yet; how it
 * failed last is said when the time is over.
 */
export async function until<T>(
  what: string,
  probe: () => Promise<T | undefined>,
  patience = longest,
): Promise<T> {
  const end = Date.now() + patience;
  let failure = "";
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined) {
        return value;
      }
      failure = "";
    } catch (thrown) {
      failure = ` The last look failed: ${thrown instanceof Error ? thrown.message : thrown}`;
    }
    if (Date.now() > end) {
      throw new Error(`Waited ${patience / 1000} s in vain until ${what}.${failure}`);
    }
    await new Promise((resolve) => setTimeout(resolve, interval));
  }
}
