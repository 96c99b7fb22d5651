import type { GuardConfirmParams, GuardConfirmResult } from "@caisson/protocol";
import { callText, unseenPart } from "./question.js";

/** Asks a person. Gone says that nobody waits for the answer any more. */
export type Ask = (params: GuardConfirmParams, gone: () => boolean) => Promise<GuardConfirmResult>;

const denied: GuardConfirmResult = { decision: "deny" };

/** A question that waits for its turn. */
interface Waiting {
  kind: string | undefined;
  /** The answer that another question of its kind has got for the session. */
  answer?: GuardConfirmResult;
}

/**
 * Questions to a person, one at a time. An answer that is to hold for the session is one
 * to those that wait as well, where they would show the same to the letter.
 */
export class Questions {
  private last: Promise<unknown> = Promise.resolve();
  private readonly waiting = new Set<Waiting>();

  constructor(private readonly ask: Ask) {}

  /** Puts the question when those before it are over. Who asked may be gone by then. */
  put(params: GuardConfirmParams, gone: () => boolean): Promise<GuardConfirmResult> {
    const own: Waiting = { kind: kindOf(params) };
    this.waiting.add(own);
    const answer = this.last.then(() => {
      this.waiting.delete(own);
      return gone() ? denied : (own.answer ?? this.askNow(own, params, gone));
    });
    this.last = answer.catch(() => undefined);
    return answer;
  }

  private async askNow(
    { kind }: Waiting,
    params: GuardConfirmParams,
    gone: () => boolean,
  ): Promise<GuardConfirmResult> {
    const answer = await this.ask(params, gone);
    if (answer.remember === "session" && kind !== undefined) {
      for (const other of this.waiting) {
        if (other.kind === kind) {
          other.answer = answer;
        }
      }
    }
    return answer;
  }
}

/** What a question shows; undefined where it does not show all of the call. */
function kindOf(params: GuardConfirmParams): string | undefined {
  const text = callText(params.arguments);
  return unseenPart(text) === ""
    ? JSON.stringify([params.sessionId, params.tool, params.reason, params.arguments])
    : undefined;
}
