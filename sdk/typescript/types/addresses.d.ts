/**
 * Reads "host:port" or an http or https URL; tls means https, and a /v1 at the end is left out.
 *
 * @param {string} text
 * @returns {string} a URL without a slash at its end
 */
export function parseAddress(text: string): string;
/**
 * Reads one address, several with commas between, or a list of them.
 *
 * @param {string | readonly string[]} addresses
 * @returns {string[]}
 */
export function parseAddresses(addresses: string | readonly string[]): string[];
export const defaultAddress: "http://127.0.0.1:8787";
/** The addresses of the nodes, of which one is asked until it does not take a call. */
export class Nodes {
    /** @param {string[]} list */
    constructor(list: string[]);
    list: string[];
    turn: number;
    /** The node to ask. */
    get now(): string;
    /**
     * Goes on with the next node, unless another call has done so since the turn.
     *
     * @param {number} turn
     */
    leave(turn: number): void;
}
