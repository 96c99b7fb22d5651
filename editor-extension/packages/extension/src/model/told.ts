/**
 * A list that the service is asked for while it tells of changes as well: an answer may be
 * older than what was told while it was on its way, or than the answer to a later question.
 */
export class Told<T> {
  /** What was told since each question that is not answered yet; undefined of what is gone. */
  private readonly waiting = new Set<Map<string, T | undefined>>();
  private asked = 0;
  private answered = 0;

  constructor(private readonly idOf: (item: T) => string) {}

  /** Takes what is told of one item; undefined when it is gone. */
  tell(id: string, item: T | undefined): void {
    for (const since of this.waiting) {
      since.set(id, item);
    }
  }

  /**
   * Asks for the list and gives it with what was told since, by id; undefined when the answer
   * to a later question has come already.
   */
  async list(ask: () => Promise<T[]>): Promise<Map<string, T> | undefined> {
    const turn = ++this.asked;
    const since = new Map<string, T | undefined>();
    this.waiting.add(since);
    try {
      const items = new Map((await ask()).map((item) => [this.idOf(item), item]));
      if (turn < this.answered) {
        return undefined;
      }
      this.answered = turn;
      for (const [id, item] of since) {
        if (item === undefined) {
          items.delete(id);
        } else {
          items.set(id, item);
        }
      }
      return items;
    } finally {
      this.waiting.delete(since);
    }
  }
}
