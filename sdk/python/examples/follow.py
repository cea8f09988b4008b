"""Prints what happens in a namespace, from a position on, for as long as it runs.

A connection that breaks is opened again where it was.

    python3 examples/follow.py [POSITION]
"""

import os
import sys

import mneme


def main() -> None:
    start = sys.argv[1] if len(sys.argv) > 1 else "p0.0.0.0"  # the beginning
    address = os.environ.get("MNEME_ADDR", "")
    with mneme.Client(address, token=os.environ.get("MNEME_TOKEN"), agent="follower") as memory:
        for event in memory.events(os.environ.get("MNEME_NAMESPACE", "default"), from_=start):
            said = event.data or {}
            verb = event.type.removeprefix("io.mneme.").removesuffix(".v1")
            print(event.position, verb, said.get("agent", ""), said.get("text", ""), flush=True)


if __name__ == "__main__":
    try:
        main()
    except mneme.MnemeError as error:
        sys.exit(f"follow: {error}")
    except KeyboardInterrupt:
        pass
