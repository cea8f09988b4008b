// Prints what happens in a namespace, from a position on, for as long as it runs. A connection that breaks is opened
// again where it was.
//
//   node examples/follow.js [POSITION]

import { Client, MnemeError } from "mneme";

const { MNEME_ADDR, MNEME_TOKEN, MNEME_NAMESPACE = "default" } = process.env;

try {
  const memory = new Client(MNEME_ADDR, { token: MNEME_TOKEN, agent: "follower" });
  const from = process.argv[2] ?? "p0.0.0.0"; // the beginning
  for await (const event of memory.events(MNEME_NAMESPACE, { from })) {
    const said = /** @type {{ agent?: string, text?: string }} */ (event.data ?? {});
    const verb = event.type.replace(/^io\.mneme\./, "").replace(/\.v1$/, "");
    console.log(event.position, verb, said.agent ?? "", said.text ?? "");
  }
} catch (error) {
  if (!(error instanceof MnemeError)) throw error;
  console.error(`follow: ${error.message}${error.hint && ` (${error.hint})`}`);
  process.exitCode = 1;
}
