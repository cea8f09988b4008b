// Where nodes are.

import { MnemeError } from "./errors.js";

export const defaultAddress = "http://127.0.0.1:8787";
const defaultPort = 8787;

/**
 * Reads "host:port" or an http or https URL; tls means https, and a /v1 at the end is left out.
 *
 * @param {string} text
 * @returns {string} a URL without a slash at its end
 */
export function parseAddress(text) {
  let full = text.trim() || defaultAddress;
  if (full.startsWith(":")) full = "127.0.0.1" + full;
  const bare = !full.includes("://") || full.startsWith("tls://");
  full = bare ? (full.startsWith("tls://") ? "https://" + full.slice(6) : "http://" + full) : full;
  const invalid = () => new MnemeError("invalid", `"${text}" is not an address`, { hint: `an address looks like ${defaultAddress}` });
  /** @type {URL} */
  let url;
  try {
    url = new URL(full);
  } catch {
    throw invalid();
  }
  if (!["http:", "https:"].includes(url.protocol) || url.hostname === "" || url.search || url.hash || url.username) throw invalid();
  const written = /^[a-z]+:\/\/(\[[^\]]*\]|[^/:]*)(:\d+)?/i.exec(full);
  const port = url.port || (written?.[2]?.slice(1) ?? (bare ? String(defaultPort) : url.protocol === "https:" ? "443" : "80"));
  const path = url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "").replace(/\/+$/, "");
  return `${url.protocol}//${url.hostname}:${port}${path}`;
}

/**
 * Reads one address, several with commas between, or a list of them.
 *
 * @param {string | readonly string[]} addresses
 * @returns {string[]}
 */
export function parseAddresses(addresses) {
  const texts = typeof addresses === "string" ? addresses.split(",") : [...addresses];
  if (texts.length === 0 || (texts.length > 1 && texts.some((text) => text.trim() === ""))) {
    throw new MnemeError("invalid", "an address is empty", { hint: `several addresses look like ${defaultAddress},http://10.0.0.7:8787` });
  }
  return texts.map(parseAddress);
}

/** The addresses of the nodes, of which one is asked until it does not take a call. */
export class Nodes {
  /** @param {string[]} list */
  constructor(list) {
    this.list = list;
    this.turn = 0;
  }

  /** The node to ask. */
  get now() {
    return /** @type {string} */ (this.list[this.turn % this.list.length]);
  }

  /**
   * Goes on with the next node, unless another call has done so since the turn.
   *
   * @param {number} turn
   */
  leave(turn) {
    if (this.turn === turn && this.list.length > 1) this.turn++;
  }
}
