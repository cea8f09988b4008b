"""Requests over http.client, with the connections that are idle kept."""

from __future__ import annotations

import http.client
import selectors
import socket
import ssl
import threading
from contextlib import suppress
from typing import Any, Callable, Iterator

from ._core import Address, Failure, Reply, Request, foreign_stream

STREAM_SILENCE = 60.0
"""Seconds in which a stream must say something; a node sends a comment more often."""

CONNECT_TIMEOUT = 3.0
"""Seconds to connect in where there is another node to ask."""


class Transport:
    """Sends requests. It is safe for use from several threads."""

    def __init__(self, context: ssl.SSLContext | None, timeout: float, several: bool) -> None:
        self._context = context
        self._timeout = timeout
        self._connect_timeout = min(timeout, CONNECT_TIMEOUT) if several else timeout
        self._idle: dict[Address, list[http.client.HTTPConnection]] = {}
        self._streams: set[Stream] = set()
        self._lock = threading.Lock()
        self.closings = 0  # how often it was closed

    def close(self) -> None:
        """Closes the connections that are idle, and breaks off streams."""
        with self._lock:
            idle, self._idle = self._idle, {}
            self.closings += 1
            for stream in self._streams:
                stream.end()
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def exchange(self, request: Request) -> Reply | Failure:
        """Sends one request and reads its answer."""
        connection = self._take(request.address)
        try:
            if connection.sock is None:
                connection.connect()
            sock: Any = connection.sock
            sock.settimeout(STREAM_SILENCE if request.stream else self._timeout)
        except OSError as error:
            connection.close()
            return Failure(error, sent=False)
        try:
            connection.request(request.method, request.target, request.body, request.headers)
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            if request.stream and 200 <= response.status < 300:
                if foreign := foreign_stream(request, headers):
                    response.close()
                    connection.close()
                    return foreign
                stream = Stream(connection, response, sock, self._forget)
                with self._lock:
                    self._streams.add(stream)
                return Reply(response.status, headers, stream=stream)
            reply = Reply(response.status, headers, response.read())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return Failure(error, sent=not refused_certificate(error))
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.setdefault(request.address, []).append(connection)
        return reply

    def _forget(self, stream: Stream) -> None:
        with self._lock:
            self._streams.discard(stream)

    def _take(self, address: Address) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                idle = self._idle.get(address)
                connection = idle.pop() if idle else None
            if connection is None:
                break
            if connection.sock is not None and not has_ended(connection.sock):
                return connection
            connection.close()  # the node has ended it meanwhile
        if address.scheme == "https":
            return http.client.HTTPSConnection(address.host, address.port, timeout=self._connect_timeout, context=self._context)
        return http.client.HTTPConnection(address.host, address.port, timeout=self._connect_timeout)


def has_ended(sock: Any) -> bool:
    """Whether the node has ended a connection that is idle: only then there is something to read."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def refused_certificate(error: Exception) -> bool:
    """Whether a node ended TLS over the client's certificate, of which it hears after the request was sent."""
    return isinstance(error, ssl.SSLError) and "CERTIFICATE" in (error.reason or "")


class Stream:
    """The body of an answer that is read as it comes."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse, sock: Any, closed: Callable[[Stream], None]) -> None:
        self._connection = connection
        self._response = response
        self._sock = sock
        self._closed = closed

    def chunks(self) -> Iterator[bytes]:
        """What comes, until the answer is whole; OSError says that it broke off."""
        try:
            while chunk := self._response.read1(65536):
                yield chunk
        except http.client.HTTPException as error:
            raise ConnectionError("the answer broke off") from error

    def end(self) -> None:
        """Breaks it off, whichever thread reads it."""
        with suppress(OSError):
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends the connection."""
        self._closed(self)
        self._response.close()
        self._connection.close()
