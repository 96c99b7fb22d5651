/** How long a condition of a busy workbench may take, in ms. */
const longest = 90_000;

/** How often it is looked at, in ms. */
const interval = 50;

/** Waits until probe gives a value, and returns it. */
export async function until<T>(
  what: string,
  probe: () => Promise<T | undefined>,
  patience = longest,
): Promise<T> {
  const end = Date.now() + patience;
  for (;;) {
    const value = await probe();
    if (value !== undefined) {
      return value;
    }
    if (Date.now() > end) {
      throw new Error(`Waited ${patience / 1000} s in vain until ${what}.`);
    }
    await new Promise((resolve) => setTimeout(resolve, interval));
  }
}
