"""Server-sent events, as the HTML standard has them in section 9.2.6."""

from __future__ import annotations

from typing import Iterator, NamedTuple

MAX_LINE = 4 << 20


class Message(NamedTuple):
    """One event of a stream."""

    id: str
    name: str
    data: str


class Parser:
    """Cuts bytes, as they come, into messages."""

    def __init__(self) -> None:
        self._rest = b""
        self._id = ""
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """The messages that are whole with this chunk."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ValueError("a line of the stream is too long")
        for raw in lines:
            line = raw.rstrip(b"\r").decode("utf-8", "replace")
            if line:
                self._field(line)
                continue
            if self._data or self._id:
                yield Message(self._id, self._name, "\n".join(self._data))
            self._id, self._name, self._data = "", "", []

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value
