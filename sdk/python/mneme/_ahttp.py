"""Requests over asyncio, with the connections that are idle kept: as much of HTTP/1.1 as a node speaks."""

from __future__ import annotations

import asyncio
import ssl
from typing import AsyncIterator, Awaitable, Callable, TypeVar

from ._core import Address, Failure, Reply, Request, foreign_stream
from ._http import CONNECT_TIMEOUT, STREAM_SILENCE, has_ended, refused_certificate

T = TypeVar("T")

_LIMIT = 256 << 10  # of a line of the head


class Connection:
    """One connection to one node."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def close(self) -> None:
        """Ends it at once."""
        self.writer.transport.abort()

    def idle(self) -> bool:
        """Whether it can take a request."""
        ended = self.reader.at_eof() or self.writer.is_closing()
        return not ended and not has_ended(self.writer.get_extra_info("socket"))

    async def ask(self, request: Request) -> tuple[int, dict[str, str]]:
        """Sends a request and reads the head of its answer."""
        lines = [f"{request.method} {request.target} HTTP/1.1", f"Host: {_host(request.address)}"]
        lines += [f"{name}: {value}" for name, value in request.headers.items()]
        if request.body is not None or request.method != "GET":
            lines.append(f"Content-Length: {len(request.body or b'')}")
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a header has a line break in it")
        self.writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (request.body or b""))
        await self.writer.drain()
        while True:
            status, headers = await self._head()
            if status >= 200:
                return status, headers

    async def _head(self) -> tuple[int, dict[str, str]]:
        version, _, rest = (await self._line()).partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
            raise ConnectionError(f"what answers speaks no HTTP: {version[:40]!r}")
        headers: dict[str, str] = {}
        while line := await self._line():
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(rest[:3]), headers

    async def _line(self) -> str:
        line = await self.reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the node ended the connection")
        return line.rstrip(b"\r\n").decode("latin-1")

    async def body(self, headers: dict[str, str]) -> AsyncIterator[bytes]:
        """The body, in the parts that come, until it is whole."""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int((await self._line()).partition(";")[0], 16):
                async for part in self._exactly(size):
                    yield part
                await self._line()
            while await self._line():
                pass  # trailers
        elif "content-length" in headers:
            async for part in self._exactly(int(headers["content-length"])):
                yield part
        else:
            while part := await self.reader.read(65536):
                yield part

    async def _exactly(self, size: int) -> AsyncIterator[bytes]:
        while size > 0:
            part = await self.reader.read(min(size, 65536))
            if not part:
                raise ConnectionError("the answer broke off")
            size -= len(part)
            yield part


class Stream:
    """The body of an answer that is read as it comes."""

    def __init__(self, connection: Connection, headers: dict[str, str], closed: Callable[[Stream], None]) -> None:
        self._connection = connection
        self._headers = headers
        self._closed = closed

    async def chunks(self) -> AsyncIterator[bytes]:
        """What comes, until the answer is whole; OSError says that it broke off."""
        body = self._connection.body(self._headers)
        while True:
            try:
                yield await _within(STREAM_SILENCE, body.__anext__())
            except StopAsyncIteration:
                return
            except (ValueError, asyncio.LimitOverrunError) as error:
                raise ConnectionError("the answer broke off") from error

    def end(self) -> None:
        """Breaks it off, whichever task reads it."""
        self._connection.close()

    async def close(self) -> None:
        """Ends the connection."""
        self._closed(self)
        self._connection.close()


class AsyncTransport:
    """Sends requests, in one event loop."""

    def __init__(self, context: ssl.SSLContext | None, timeout: float, several: bool) -> None:
        self._context = context
        self._timeout = timeout
        self._connect_timeout = min(timeout, CONNECT_TIMEOUT) if several else timeout
        self._idle: dict[Address, list[Connection]] = {}
        self._streams: set[Stream] = set()
        self.closings = 0  # how often it was closed

    async def close(self) -> None:
        """Closes the connections that are idle, and breaks off streams."""
        idle, self._idle = self._idle, {}
        self.closings += 1
        for stream in self._streams:
            stream.end()
        for connections in idle.values():
            for connection in connections:
                connection.close()

    async def exchange(self, request: Request) -> Reply | Failure:
        """Sends one request and reads its answer."""
        try:
            connection = await self._take(request.address)
        except OSError as error:
            return Failure(error, sent=False)
        keep = False
        try:
            status, headers = await _within(self._timeout, connection.ask(request))
            if request.stream and 200 <= status < 300:
                if foreign := foreign_stream(request, headers):
                    return foreign
                keep = True
                stream = Stream(connection, headers, self._streams.discard)
                self._streams.add(stream)
                return Reply(status, headers, stream=stream)
            body = await _within(self._timeout, _whole(connection, headers))
            keep = headers.get("connection", "").lower() != "close" and ("content-length" in headers or "transfer-encoding" in headers)
            if keep:
                self._idle.setdefault(request.address, []).append(connection)
            return Reply(status, headers, body)
        except (OSError, ValueError, asyncio.LimitOverrunError) as error:
            return Failure(error, sent=not refused_certificate(error))
        finally:
            if not keep:
                connection.close()

    async def _take(self, address: Address) -> Connection:
        idle = self._idle.get(address, [])
        while idle:
            connection = idle.pop()
            if connection.idle():
                return connection
            connection.close()  # the node has ended it meanwhile
        secure = self._context if address.scheme == "https" else None
        opening = asyncio.open_connection(address.host, address.port, ssl=secure, limit=_LIMIT)
        return Connection(*await _within(self._connect_timeout, opening))


async def _whole(connection: Connection, headers: dict[str, str]) -> bytes:
    return b"".join([part async for part in connection.body(headers)])


async def _within(seconds: float, work: Awaitable[T]) -> T:
    """The result of work; TimeoutError, which is an OSError, if it does not come in time."""
    try:
        return await asyncio.wait_for(work, seconds)
    except asyncio.TimeoutError as error:
        raise TimeoutError(f"it took longer than {seconds:g} seconds") from error


def _host(address: Address) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{host}:{address.port}"
