// fetch for Node with certificates of the caller's own, which the global fetch cannot take.

import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { Readable } from "node:stream";
import { MnemeError } from "./errors.js";

/**
 * A fetch for https addresses.
 *
 * @param {{ caFile?: string, certFile?: string, keyFile?: string }} files in PEM
 * @returns {typeof fetch}
 */
export function fetchWithCertificates({ caFile, certFile, keyFile }) {
  const read = (/** @type {string | undefined} */ path) => (path === undefined ? undefined : readFileSync(path));
  /** @type {Agent} */
  let agent;
  try {
    agent = new Agent({ keepAlive: true, ca: read(caFile), cert: read(certFile), key: read(keyFile) });
  } catch (cause) {
    throw new MnemeError("invalid", `read certificates: ${cause}`, {
      hint: "the files hold an authority, a certificate and its key in PEM",
      cause,
    });
  }
  return (input, init = {}) =>
    new Promise((resolve, reject) => {
      const fail = (/** @type {unknown} */ cause) => reject(init.signal?.aborted ? init.signal.reason : new TypeError("fetch failed", { cause }));
      const asked = request(String(input), {
        agent,
        method: init.method ?? "GET",
        headers: /** @type {Record<string, string>} */ (init.headers ?? {}),
        signal: init.signal ?? undefined,
      });
      asked.on("error", fail);
      asked.on("response", (answer) => {
        const headers = new Headers();
        for (const [name, value] of Object.entries(answer.headers)) {
          for (const one of [value].flat()) if (one !== undefined) headers.append(name, one);
        }
        const body = /** @type {ReadableStream<Uint8Array>} */ (/** @type {unknown} */ (Readable.toWeb(answer)));
        resolve(new Response(body, { status: answer.statusCode ?? 500, headers }));
      });
      asked.end(typeof init.body === "string" ? init.body : undefined);
    });
}
