// Requests, and what follows from an answer.
//
// The one rule of retries: nothing is sent again that could happen twice. Reads may be sent again; captures
// and revisions carry an id under which they count once; whatever else has changed something and lost its
// answer is outcome_unknown.

import { Nodes, defaultAddress, parseAddresses } from "./addresses.js";
import { MnemeError, problem, transient } from "./errors.js";
import { operations } from "./operations.js";

/**
 * @typedef {object} ClientOptions
 * @property {string} [token] the operator token, if the node wants one
 * @property {string} [agent] who acts when a call does not say: the reader of reads, the author of captures, the
 *   actor of revisions
 * @property {string} [caFile] in Node: the authority of the nodes' certificates, instead of the system's, in PEM
 * @property {string} [certFile] in Node: the certificate that the client shows, in PEM
 * @property {string} [keyFile] in Node: its key, in PEM
 * @property {number} [timeout] how many milliseconds a node may take to answer; 60,000 unless said
 * @property {typeof fetch} [fetch] sends the requests; the global one unless said
 */

/**
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal] ends the call; it rejects with the signal's reason then
 */

/**
 * One request, whichever node it goes to.
 *
 * @typedef {object} Call
 * @property {keyof typeof operations} operation
 * @property {Record<string, string>} [path]
 * @property {Record<string, any>} [options] parameters, by their names
 * @property {unknown} [body]
 * @property {string} [key] the id under which it may be sent twice
 * @property {boolean} [sure] "unavailable" says that it has not happened
 * @property {string} [accept]
 * @property {string} [lastEvent]
 * @property {AbortSignal} [signal]
 */

/** What has no answer; sent says that the node may have seen the request, foreign that what answered is no memnode. */
class Failure {
  /**
   * @param {unknown} error
   * @param {boolean} sent
   * @param {boolean} [foreign]
   */
  constructor(error, sent, foreign = false) {
    this.error = error;
    this.sent = sent;
    this.foreign = foreign;
  }
}

const json = "application/json";

/** What to do where no memnode answered. */
const foreignHint =
  "is that a memnode? it did not answer like one; a proxy, or a network that asks to sign in first, may stand in between";

/** Sends calls to the nodes of one cluster. */
export class Transport {
  /**
   * @param {string | readonly string[]} addresses
   * @param {ClientOptions} options
   */
  constructor(addresses = defaultAddress, options = {}) {
    this.nodes = new Nodes(parseAddresses(addresses));
    this.options = options;
    this.timeout = options.timeout ?? 60_000;
    if (!(this.timeout > 0 && this.timeout < 2 ** 31)) {
      throw new MnemeError("invalid", `timeout is ${this.timeout}, it must be a number of milliseconds above 0 and below 2^31`);
    }
    if ((options.certFile === undefined) !== (options.keyFile === undefined)) {
      throw new MnemeError("invalid", "a certificate without its key is given, or the reverse", { hint: "name both files, or none" });
    }
    /** @type {Promise<typeof fetch> | undefined} */
    this.secure = undefined;
  }

  /**
   * Sends a call, again where its answer was lost and it may be repeated.
   *
   * @param {Call} call
   * @returns {Promise<Response>}
   */
  async open(call) {
    /** @type {unknown} */
    let first;
    try {
      return await this.#send(call);
    } catch (error) {
      if (call.key === undefined || !(error instanceof MnemeError) || error.code !== "outcome_unknown") throw error;
      first = error;
    }
    for (let i = 0; i < Math.max(1, this.nodes.list.length - 1); i++) {
      try {
        return await this.#send(call);
      } catch (error) {
        const foreign = error instanceof MnemeError && error.foreign;
        if (!transient(error) && !foreign) throw error; // else it says nothing about the first attempt
      }
    }
    throw first;
  }

  /**
   * Sends a call and reads the JSON of its answer, which has most of the names that a memnode's always has: one of
   * another version need not know each.
   *
   * @param {Call} call
   * @returns {Promise<any>}
   */
  async json(call) {
    const answer = await this.open(call);
    const text = await answer.text(); // it is whole: see #exchange
    try {
      const document = JSON.parse(text);
      /** @type {readonly string[]} */
      const names = operations[call.operation].answer;
      const has = names.filter((name) => Object.hasOwn(document ?? {}, name)).length;
      if (2 * has <= names.length) throw new Error("it is the JSON of something else");
      return document;
    } catch (cause) {
      const address = this.nodes.now;
      if (writes(call)) throw lost(call, address, cause, true);
      throw new MnemeError("internal", `the answer of ${address} is not what it should be`, { hint: "is that a memnode?", foreign: true, cause });
    }
  }

  /**
   * Asks one node after the other for as long as that is safe and makes sense.
   *
   * @param {Call} call
   * @returns {Promise<Response>}
   */
  async #send(call) {
    /** @type {MnemeError[]} */
    const unreached = [];
    /** @type {MnemeError | undefined} */
    let said;
    for (let i = 0; i < this.nodes.list.length; i++) {
      const { turn, now: address } = this.nodes;
      const answer = await this.#exchange(call, address);
      /** @type {MnemeError} */
      let error;
      let goesOn = true;
      if (!(answer instanceof Failure)) {
        if (answer.ok) return answer;
        const refused = await refusal(address, answer);
        error = said = refused.error;
        goesOn = writes(call)
          ? error.code === "unavailable" && refused.own && (call.key !== undefined || call.sure === true)
          : ["unavailable", "stale_position"].includes(error.code);
      } else if (answer.sent) {
        error = said = lost(call, address, answer.error, answer.foreign);
        goesOn = !writes(call);
      } else {
        error = unreachable(address, answer.error);
        unreached.push(error);
      }
      if (goesOn || answer instanceof Failure) this.nodes.leave(turn);
      if (!goesOn) throw error;
    }
    if (said !== undefined) throw said;
    if (unreached.length === 1) throw unreached[0];
    throw new MnemeError("unavailable", unreached.map((error) => error.message).join("; "), {
      hint: "is any of these nodes running? start one, or name other addresses",
      cause: unreached[0],
    });
  }

  /**
   * Asks one node. The body of an answer is whole, unless it is a stream.
   *
   * @param {Call} call
   * @param {string} address
   * @returns {Promise<Response | Failure>}
   */
  async #exchange(call, address) {
    const { url, init } = this.#request(call, address);
    const ends = new AbortController();
    const timer = setTimeout(() => ends.abort(new Error(`it took longer than ${this.timeout} ms`)), this.timeout);
    const leave = () => ends.abort(call.signal?.reason);
    call.signal?.addEventListener("abort", leave);
    try {
      call.signal?.throwIfAborted();
      const send = await this.#fetch(address);
      const answer = await send(url, { ...init, signal: ends.signal, redirect: "manual" });
      if (answer.ok && call.accept !== undefined) {
        const foreign = foreignStream(answer, call.accept);
        if (foreign === undefined) return streaming(answer, ends, call.signal);
        ends.abort(foreign.error);
        return foreign;
      }
      const body = await answer.text();
      const bodiless = answer.status < 200 || answer.status === 204 || answer.status === 304;
      return new Response(bodiless ? null : body, { status: answer.status < 200 ? 502 : answer.status, headers: answer.headers });
    } catch (error) {
      if (call.signal?.aborted) throw call.signal.reason;
      if (error instanceof MnemeError) throw error;
      return new Failure(ends.signal.aborted ? ends.signal.reason : causeOf(error), ends.signal.aborted || wasSent(error));
    } finally {
      clearTimeout(timer);
      call.signal?.removeEventListener("abort", leave);
    }
  }

  /**
   * @param {string} address
   * @returns {Promise<typeof fetch>}
   */
  async #fetch(address) {
    const { caFile, certFile, keyFile } = this.options;
    if (this.options.fetch !== undefined) return this.options.fetch;
    if (!address.startsWith("https:") || (caFile === undefined && certFile === undefined)) return fetch;
    this.secure ??= import("./node.js").then((node) => node.fetchWithCertificates({ caFile, certFile, keyFile }));
    return await this.secure;
  }

  /**
   * @param {Call} call
   * @param {string} address
   * @returns {{ url: string, init: RequestInit }}
   */
  #request(call, address) {
    const operation = operations[call.operation];
    /** @type {string} */
    let path = operation.path;
    for (const [name, value] of Object.entries(call.path ?? {})) {
      // Of an address with dots between its slashes, escaped ones too, fetch makes another one.
      if (typeof value !== "string" || ["", ".", ".."].includes(value)) {
        throw new MnemeError("invalid", `${JSON.stringify(value)} is not ${name === "ns" ? "a namespace" : "an id"}`);
      }
      path = path.replace(`{${name}}`, encodeURIComponent(value));
    }
    const { if_version: version, as, ...options } = call.options ?? {};
    /** @type {Record<string, string>} */
    const headers = { Accept: `${call.accept ?? json}, application/problem+json` };
    /** @type {readonly string[]} */
    const query = operation.query;
    /** @type {readonly string[]} */
    const known = operation.headers;
    const acting = as ?? this.options.agent;
    if (acting !== undefined && known.includes("Mneme-Agent") && !query.includes("as")) headers["Mneme-Agent"] = acting;
    if (acting !== undefined && query.includes("as")) options.as = acting;
    if (acting !== undefined && known.length === 0 && operation.method !== "GET") headers["Mneme-Agent"] = acting;
    if (version !== undefined && known.includes("If-Match")) headers["If-Match"] = String(version);
    else if (version !== undefined) options.if_version = version;
    if (call.key !== undefined) headers["Idempotency-Key"] = call.key;
    if (call.lastEvent !== undefined) headers["Last-Event-ID"] = call.lastEvent;
    if (this.options.token !== undefined) headers.Authorization = `Bearer ${this.options.token}`;
    const pairs = new URLSearchParams();
    for (const [name, value] of Object.entries(options)) {
      if (value === undefined) continue;
      if (!query.includes(name)) {
        throw new MnemeError("invalid", `${call.operation} takes no ${name}`, { hint: `it takes ${query.join(", ") || "nothing"}` });
      }
      for (const text of texts(name, value)) pairs.append(name, text);
    }
    let body;
    if (call.body !== undefined) {
      body = written(call.body);
      headers["Content-Type"] = json;
    }
    for (const [name, value] of Object.entries(headers)) {
      if (!/^[ -~]*$/.test(value)) throw new MnemeError("invalid", `what is sent as ${name} may hold visible ASCII characters only`);
    }
    const asked = pairs.size > 0 ? `?${pairs}` : "";
    return { url: address + path + asked, init: { method: operation.method, headers, body } };
  }
}

/**
 * The JSON of a body. What it has no form for is refused; JSON.stringify leaves it out or makes another value of it.
 *
 * @param {unknown} body
 */
function written(body) {
  try {
    return JSON.stringify(
      body,
      /** @type {(this: any, name: string, value: unknown) => unknown} */
      function (name, value) {
        const odd = typeof value === "number" ? !Number.isFinite(value) : value === null ? this[name] !== null : false;
        if (odd) throw new TypeError(`${name} is ${this[name]}`);
        if (typeof value === "string" && /\p{Surrogate}/u.test(value)) throw new TypeError(`${name} is not well-formed Unicode`);
        return value;
      },
    );
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new MnemeError("invalid", `the request cannot be written as JSON: ${said}`, { cause: error });
  }
}

/**
 * Whether a call changes something.
 *
 * @param {Call} call
 */
function writes(call) {
  const { method, path } = operations[call.operation];
  return method !== "GET" && !path.endsWith("/search");
}

/**
 * A parameter's values as they stand in a URL.
 *
 * @param {string} name
 * @param {any} value
 * @returns {string[]}
 */
function texts(name, value) {
  if (value instanceof Date) return [value.toISOString()];
  if (Array.isArray(value)) return name === "fields" ? [value.join(",")] : value.map(String);
  return [String(value)];
}

/**
 * Why an answer that was to be read as it comes is no memnode's; undefined where it may be one's. What a memnode sends
 * so begins with its media type, also where nothing follows: by that an empty export is told from the empty answer of
 * a portal.
 *
 * @param {Response} answer
 * @param {string} media
 */
function foreignStream(answer, media) {
  const sent = answer.headers.get("content-type") ?? "";
  if (sent.split(";")[0]?.trim().toLowerCase() === media) return undefined;
  return new Failure(new Error(`what answered is no memnode: it sent ${sent.slice(0, 60) || "nothing"} where a memnode sends ${media}`), true, true);
}

/**
 * An answer that is read as it comes; it ends with the controller, or with the caller's signal.
 *
 * @param {Response} answer
 * @param {AbortController} ends
 * @param {AbortSignal | undefined} signal
 */
function streaming(answer, ends, signal) {
  const leave = () => ends.abort(signal?.reason);
  signal?.addEventListener("abort", leave, { once: true });
  return Object.assign(answer, {
    end: () => {
      signal?.removeEventListener("abort", leave);
      ends.abort(new Error("the reader has left"));
    },
  });
}

/** How long a stream may say nothing; a node sends a comment more often. */
const silence = 60_000;

/**
 * The text of a stream, as it comes, until it is whole.
 *
 * @param {Response} answer
 * @returns {AsyncGenerator<string, void, undefined>}
 */
export async function* chunks(answer) {
  const end = /** @type {Response & { end: () => void }} */ (answer).end;
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  try {
    while (reader !== undefined) {
      const { done, value } = await within(silence, reader.read());
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    end();
    await reader?.cancel().catch(() => {}); // it may have broken off
  }
}

/**
 * What a promise resolves to, if that is soon enough.
 *
 * @template T
 * @param {number} ms
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
function within(ms, promise) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the stream says nothing any more")), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** @type {Record<number, import("../types/wire.js").Code>} */
const codesOfStatus = {
  401: "unauthenticated",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  410: "gone",
  412: "conflict",
  413: "too_large",
  429: "overloaded",
  502: "unavailable",
  503: "unavailable",
  504: "timeout",
  507: "no_space",
};

/**
 * The error that an answer tells of, and whether it is a memnode's own.
 *
 * @param {string} address
 * @param {Response} answer
 * @returns {Promise<{ error: MnemeError, own: boolean }>}
 */
async function refusal(address, answer) {
  const { status } = answer;
  const wait = answer.headers.get("retry-after") ?? "";
  const retryAfter = /^\d+$/.test(wait) ? Math.min(Number(wait), 3600) : 0;
  if (status < 400) {
    const hint = "a memnode redirects nobody; name the address of the node itself";
    const error = new MnemeError("unavailable", `${address} answered ${status}: it leads elsewhere and is not followed`, { hint, status, foreign: true });
    return { error, own: false };
  }
  const body = await answer.text();
  try {
    const error = problem(JSON.parse(body), status, retryAfter);
    if (error !== undefined) return { error, own: true };
  } catch {
    // not JSON
  }
  if (status === 400 && body.startsWith("Client sent an HTTP request to an HTTPS server")) {
    const hint = "write https:// in the address; caFile names the authority if the system does not know it";
    return { error: new MnemeError("unavailable", `the node at ${address} speaks TLS, and was asked in clear`, { hint, status }), own: false };
  }
  const code = codesOfStatus[status] ?? (status < 500 ? "invalid" : "internal");
  return { error: new MnemeError(code, `${address} answered ${status}`, { hint: foreignHint, status, retryAfter, foreign: true }), own: false };
}

/**
 * What made fetch fail.
 *
 * @param {any} error
 * @returns {any}
 */
function causeOf(error) {
  return error?.cause?.errors?.[0] ?? error?.cause ?? error;
}

/**
 * Whether a request that failed may have reached the node. A browser does not say; then it may have.
 *
 * @param {unknown} error
 */
function wasSent(error) {
  const code = String(causeOf(error)?.code ?? "");
  return !/^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT)$|CERT|SSL|TLS|SIGNATURE/.test(code);
}

/**
 * The error of a request that never left.
 *
 * @param {string} address
 * @param {any} cause
 */
function unreachable(address, cause) {
  const code = String(cause?.code ?? "");
  const said = cause?.message ?? String(cause);
  if (/CERT|SIGNATURE/.test(code) && !/ALERT/.test(code)) {
    const hint = "caFile names the file with its authority; the certificate has to be for the address's name";
    return new MnemeError("unavailable", `the certificate of the node at ${address} is not trusted: ${said}`, { hint, cause });
  }
  if (/SSL|TLS|ALERT/.test(code)) {
    const hint = "write http:// in the address if it speaks no TLS; certFile and keyFile are the client's own certificate if it asks for one";
    return new MnemeError("unavailable", `the node at ${address} did not begin TLS: ${said}`, { hint, cause });
  }
  const host = address.slice(address.indexOf("://") + 3);
  const hint = `is \`memnode\` running at ${host}? start it, or name another address`;
  return new MnemeError("unavailable", `cannot reach a node at ${address}: ${said}`, { hint, cause });
}

/**
 * The error of a request that may have arrived.
 *
 * @param {Call} call
 * @param {string} address
 * @param {any} cause
 * @param {boolean} [foreign]
 */
export function lost(call, address, cause, foreign = false) {
  const said = cause?.message ?? String(cause);
  if (foreign && !writes(call)) return new MnemeError("unavailable", `asked ${address}: ${said}`, { hint: foreignHint, foreign, cause });
  if (!writes(call)) {
    const code = /took longer/.test(said) ? "timeout" : "unavailable";
    return new MnemeError(code, `no answer from ${address}: ${said}`, { hint: "is `memnode` still running there?", cause });
  }
  const hint = call.key === undefined ? "look whether it happened before sending it again" : `it may be sent again with the same id, ${call.key}`;
  return new MnemeError("outcome_unknown", `the answer from ${address} was lost, the write may or may not have happened: ${said}`, { hint, foreign, cause });
}
