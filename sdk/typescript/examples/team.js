// Two agents that share a namespace: what one has decided the other finds at once, and what one keeps to itself the
// other does not.
//
//   node examples/team.js

import { Client, MnemeError } from "mneme";

const { MNEME_ADDR, MNEME_TOKEN, MNEME_NAMESPACE = "default" } = process.env;

const agent = (/** @type {string} */ name) => new Client(MNEME_ADDR, { token: MNEME_TOKEN, agent: name });

try {
  const planner = agent("planner");
  const builder = agent("builder");

  const decided = await planner.capture(MNEME_NAMESPACE, { text: "The API is versioned in its path: /v1, /v2.", kind: "decision" });
  console.log("planner decided:", decided.status);
  const mine = await planner.capture(MNEME_NAMESPACE, { text: "Ask Ann about the API budget.", scope: "agent" });
  for (const [name, reader] of /** @type {const} */ ([["builder", builder], ["planner", planner]])) {
    // The position of the last write: the answer includes it, whichever node gives it.
    const query = "how is the API versioned, and who knows its budget";
    const found = await reader.search(MNEME_NAMESPACE, { query, at_least: mine.position });
    console.log(`${name} finds:`);
    for (const hit of found.results) console.log(`- ${hit.kind}, from ${hit.agent}: ${hit.text}`);
  }
} catch (error) {
  if (!(error instanceof MnemeError)) throw error;
  console.error(`team: ${error.message}${error.hint && ` (${error.hint})`}`);
  process.exitCode = 1;
}
