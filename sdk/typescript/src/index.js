// Client of Mneme, a memory for teams of AI agents.
//
//   import { Client } from "mneme";
//   const memory = new Client("http://127.0.0.1:8787", { agent: "agent-7" });
//   await memory.capture("default", "deploys happen on Tuesdays");
//   const { results } = await memory.search("default", "when do we deploy");

export { Client } from "./client.js";
export { MnemeError } from "./errors.js";
