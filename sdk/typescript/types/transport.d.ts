/**
 * The text of a stream, as it comes, until it is whole.
 *
 * @param {Response} answer
 * @returns {AsyncGenerator<string, void, undefined>}
 */
export function chunks(answer: Response): AsyncGenerator<string, void, undefined>;
/**
 * The error of a request that may have arrived.
 *
 * @param {Call} call
 * @param {string} address
 * @param {any} cause
 * @param {boolean} [foreign]
 */
export function lost(call: Call, address: string, cause: any, foreign?: boolean): MnemeError;
/** Sends calls to the nodes of one cluster. */
export class Transport {
    /**
     * @param {string | readonly string[]} addresses
     * @param {ClientOptions} options
     */
    constructor(addresses?: string | readonly string[], options?: ClientOptions);
    nodes: Nodes;
    options: ClientOptions;
    timeout: number;
    /** @type {Promise<typeof fetch> | undefined} */
    secure: Promise<typeof fetch> | undefined;
    /**
     * Sends a call, again where its answer was lost and it may be repeated.
     *
     * @param {Call} call
     * @returns {Promise<Response>}
     */
    open(call: Call): Promise<Response>;
    /**
     * Sends a call and reads the JSON of its answer, which has most of the names that a memnode's always has: one of
     * another version need not know each.
     *
     * @param {Call} call
     * @returns {Promise<any>}
     */
    json(call: Call): Promise<any>;
    #private;
}
export type ClientOptions = {
    /**
     * the operator token, if the node wants one
     */
    token?: string | undefined;
    /**
     * who acts when a call does not say: the reader of reads, the author of captures, the
     * actor of revisions
     */
    agent?: string | undefined;
    /**
     * in Node: the authority of the nodes' certificates, instead of the system's, in PEM
     */
    caFile?: string | undefined;
    /**
     * in Node: the certificate that the client shows, in PEM
     */
    certFile?: string | undefined;
    /**
     * in Node: its key, in PEM
     */
    keyFile?: string | undefined;
    /**
     * how many milliseconds a node may take to answer; 60,000 unless said
     */
    timeout?: number | undefined;
    /**
     * sends the requests; the global one unless said
     */
    fetch?: typeof fetch | undefined;
};
export type CallOptions = {
    /**
     * ends the call; it rejects with the signal's reason then
     */
    signal?: AbortSignal | undefined;
};
/**
 * One request, whichever node it goes to.
 */
export type Call = {
    operation: keyof typeof operations;
    path?: Record<string, string> | undefined;
    /**
     * parameters, by their names
     */
    options?: Record<string, any> | undefined;
    body?: unknown;
    /**
     * the id under which it may be sent twice
     */
    key?: string | undefined;
    /**
     * "unavailable" says that it has not happened
     */
    sure?: boolean | undefined;
    accept?: string | undefined;
    lastEvent?: string | undefined;
    signal?: AbortSignal | undefined;
};
import { MnemeError } from "./errors.js";
import { Nodes } from "./addresses.js";
import { operations } from "./operations.js";
