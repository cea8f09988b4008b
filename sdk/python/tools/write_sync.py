"""Writes mneme/client.py from mneme/aio.py: the same client without async and await."""

from __future__ import annotations

import pathlib
import re

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "mneme"

RULES = [
    (r'\A""".*?"""', '"""The client, for threads. Written from aio.py by tools/write_sync.py; do not edit."""'),
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsyncClient\b", "Client"),
    (r"\bAsyncTransport\b", "Transport"),
    (r"AsyncIterator, Iterable, Mapping", "Iterable, Iterator, Mapping"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\b_ahttp\b", "_http"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"\baclose\b", "close"),
    (r"\bimport asyncio\nimport json\n", "import json\nimport time\n"),
    (r"\basyncio\.sleep\b", "time.sleep"),
]


def sync() -> str:
    """What client.py has to hold."""
    text = (PACKAGE / "aio.py").read_text()
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text, flags=re.S if pattern.startswith(r"\A") else 0)
    return text


if __name__ == "__main__":
    (PACKAGE / "client.py").write_text(sync())
