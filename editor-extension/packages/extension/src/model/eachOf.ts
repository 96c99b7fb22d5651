/** Does the work for each item, for so many at the same time at most, and gives the results in order. */
export async function eachOf<T, R>(
  items: readonly T[],
  atMost: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const left = items.entries();
  const takeTurns = async () => {
    for (const [i, item] of left) {
      results[i] = await work(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atMost, items.length) }, takeTurns));
  return results;
}
