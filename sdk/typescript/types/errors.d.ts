/**
 * Whether an error says nothing about the request itself.
 *
 * @param {unknown} error
 * @returns {error is MnemeError}
 */
export function transient(error: unknown): error is MnemeError;
/**
 * The error that a problem document tells of; undefined if it is none of a node. What stands in a stream has the
 * status 0, and need not name its own.
 *
 * @param {any} document
 * @param {number} status
 * @param {number} [retryAfter]
 * @returns {MnemeError | undefined}
 */
export function problem(document: any, status: number, retryAfter?: number): MnemeError | undefined;
/** @import { Code } from "../types/wire.js" */
/**
 * What went wrong, for people: what happened, to what, and what to do.
 */
export class MnemeError extends Error {
    /**
     * @param {Code} code Mneme's code, such as "not_found"
     * @param {string} message what happened
     * @param {{ hint?: string, status?: number, retryAfter?: number, foreign?: boolean, cause?: unknown }} [more]
     */
    constructor(code: Code, message: string, more?: {
        hint?: string;
        status?: number;
        retryAfter?: number;
        foreign?: boolean;
        cause?: unknown;
    });
    /** Mneme's code: branch on this one. */
    code: Code;
    /** What to do; "" where there is nothing to say. */
    hint: string;
    /** The HTTP status; 0 where no node answered. */
    status: number;
    /** How many seconds to wait before trying again; 0 where the node did not say. */
    retryAfter: number;
    /**
     * Whether something answered that is no memnode, such as a proxy in between: its code is a guess from the HTTP
     * status then, and decides nothing.
     */
    foreign: boolean;
}
import type { Code } from "../types/wire.js";
