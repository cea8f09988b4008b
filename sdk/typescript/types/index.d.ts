export { Client } from "./client.js";
export { MnemeError } from "./errors.js";
export type { CallOptions, ClientOptions } from "./transport.js";
export type * from "./wire.js";
