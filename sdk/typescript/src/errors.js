// Errors.

/** @import { Code } from "../types/wire.js" */

/**
 * What went wrong, for people: what happened, to what, and what to do.
 */
export class MnemeError extends Error {
  /** @override */
  name = "MnemeError";

  /**
   * @param {Code} code Mneme's code, such as "not_found"
   * @param {string} message what happened
   * @param {{ hint?: string, status?: number, retryAfter?: number, foreign?: boolean, cause?: unknown }} [more]
   */
  constructor(code, message, more = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    /** Mneme's code: branch on this one. */
    this.code = code;
    /** What to do; "" where there is nothing to say. */
    this.hint = more.hint ?? "";
    /** The HTTP status; 0 where no node answered. */
    this.status = more.status ?? 0;
    /** How many seconds to wait before trying again; 0 where the node did not say. */
    this.retryAfter = more.retryAfter ?? 0;
    /**
     * Whether something answered that is no memnode, such as a proxy in between: its code is a guess from the HTTP
     * status then, and decides nothing.
     */
    this.foreign = more.foreign ?? false;
  }
}

/** @type {ReadonlySet<string>} */
const codes = new Set([
  "conflict",
  "forbidden",
  "gone",
  "internal",
  "invalid",
  "log_diverged",
  "lost_position",
  "no_space",
  "not_found",
  "outcome_unknown",
  "overloaded",
  "quota",
  "stale_position",
  "timeout",
  "too_large",
  "unauthenticated",
  "unavailable",
]);

/**
 * Whether an error says nothing about the request itself.
 *
 * @param {unknown} error
 * @returns {error is MnemeError}
 */
export function transient(error) {
  return (
    error instanceof MnemeError &&
    ["unavailable", "overloaded", "timeout", "outcome_unknown", "no_space", "log_diverged"].includes(error.code)
  );
}

/**
 * The error that a problem document tells of; undefined if it is none of a node. What stands in a stream has the
 * status 0, and need not name its own.
 *
 * @param {any} document
 * @param {number} status
 * @param {number} [retryAfter]
 * @returns {MnemeError | undefined}
 */
export function problem(document, status, retryAfter = 0) {
  if (typeof document?.code !== "string" || document.code === "") return undefined;
  if (status !== 0 && (!document.type || document.status !== status)) return undefined; // others have a code, too
  const code = codes.has(document.code) ? document.code : "internal";
  const message = String(document.detail || document.title || document.code);
  return new MnemeError(code, message, { hint: String(document.hint ?? ""), status, retryAfter });
}
