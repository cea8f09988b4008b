// Server-sent events, as the HTML standard has them in section 9.2.6.

/** @typedef {{ id: string, name: string, data: string }} Message */

const maxLine = 4 << 20;

/** Cuts text, as it comes, into messages. */
export class Parser {
  #rest = "";
  #id = "";
  #name = "";
  /** @type {string[]} */
  #data = [];

  /**
   * The messages that are whole with this chunk.
   *
   * @param {string} chunk
   * @returns {Message[]}
   */
  feed(chunk) {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > maxLine) throw new Error("a line of the stream is too long");
    const messages = [];
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line !== "") {
        this.#field(line);
        continue;
      }
      if (this.#data.length > 0 || this.#id !== "") {
        messages.push({ id: this.#id, name: this.#name, data: this.#data.join("\n") });
      }
      this.#id = this.#name = "";
      this.#data = [];
    }
    return messages;
  }

  /** @param {string} line */
  #field(line) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const rest = colon < 0 ? "" : line.slice(colon + 1);
    const value = rest.startsWith(" ") ? rest.slice(1) : rest;
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#name = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
  }
}
