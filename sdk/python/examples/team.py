"""Two agents that share a namespace, with the asynchronous client.

What one has decided the other finds at once, and what one keeps to itself the other does not.

    python3 examples/team.py
"""

import asyncio
import os
import sys

import mneme

NAMESPACE = os.environ.get("MNEME_NAMESPACE", "default")


def agent(name: str) -> mneme.AsyncClient:
    return mneme.AsyncClient(os.environ.get("MNEME_ADDR", ""), token=os.environ.get("MNEME_TOKEN"), agent=name)


async def main() -> None:
    async with agent("planner") as planner, agent("builder") as builder:
        decided = await planner.capture(NAMESPACE, "The API is versioned in its path: /v1, /v2.", kind="decision")
        print("planner decided:", decided.status)
        private = await planner.capture(NAMESPACE, "Ask Ann about the API budget.", scope="agent")
        for name, reader in (("builder", builder), ("planner", planner)):
            # The position of the last write: the answer includes it, whichever node gives it.
            question = "how is the API versioned, and who knows its budget"
            found = await reader.search(NAMESPACE, question, at_least=private.position)
            print(f"{name} finds:")
            for hit in found.results:
                print(f"- {hit.kind}, from {hit.agent}: {hit.text}")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except mneme.MnemeError as error:
        sys.exit(f"team: {error}")
