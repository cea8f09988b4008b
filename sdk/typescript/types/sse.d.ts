/** Cuts text, as it comes, into messages. */
export class Parser {
    /**
     * The messages that are whole with this chunk.
     *
     * @param {string} chunk
     * @returns {Message[]}
     */
    feed(chunk: string): Message[];
    #private;
}
export type Message = {
    id: string;
    name: string;
    data: string;
};
