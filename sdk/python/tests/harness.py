"""A memnode, and what may stand between it and a client."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest
from typing import Any, Callable, Iterator

import mneme

PATIENCE = 60.0


def program(name: str) -> str:
    folder = os.environ.get("MNEME_TEST_PROGRAMS")
    if not folder:
        raise RuntimeError("MNEME_TEST_PROGRAMS must name the folder with memnode and memctl")
    return os.path.join(folder, name)


class Node:
    """A running memnode."""

    def __init__(self, *args: str) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mneme-python-"))
        command = [program("memnode"), "--data-dir", str(self.folder / "data"), "--http-addr", "127.0.0.1:0"]
        self._log = open(self.folder / "log", "wb")
        self._process = subprocess.Popen(
            [*command, "--nats-addr", "127.0.0.1:0", *args],
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={"HOME": str(self.folder), "PATH": os.environ["PATH"]},
            text=True,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("memnode ready "):
                self.url = next(word.removeprefix("http=") for word in line.split() if word.startswith("http="))
                return
        self.stop()
        raise RuntimeError("memnode did not get ready")

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.partition("://")[2].rpartition(":")
        return host, int(port)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Proxy:
    """Stands between a client and a node, and cuts connections.

    ``cut`` sees all that the node has answered on a connection, and says after how many bytes of it the
    connection ends; None lets all through.
    """

    def __init__(self, node: tuple[str, int], cut: Callable[[bytes], int | None] = lambda answer: None) -> None:
        self._node = node
        self._cut = cut
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            node = socket.create_connection(self._node)
            self._open += [client, node]
            for work in (self._ask, self._answer):
                thread = threading.Thread(target=work, args=(client, node))
                self._threads.append(thread)
                thread.start()

    def _ask(self, client: socket.socket, node: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                node.sendall(data)
        _end(node)

    def _answer(self, client: socket.socket, node: socket.socket) -> None:
        answer = b""
        with contextlib.suppress(OSError):
            while data := node.recv(65536):
                sent, answer = len(answer), answer + data
                end = self._cut(answer)
                client.sendall(answer[sent:end])
                if end is not None:
                    break
        _end(client)
        _end(node)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._open):
            _end(connection)
        for thread in list(self._threads):
            thread.join(PATIENCE)
        for connection in self._open:
            connection.close()


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class Blocking:
    """An AsyncClient that is used as a Client is, so that both take the same tests."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._client = mneme.AsyncClient(*args, **kwargs)
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        self._loop.run_until_complete(self._client.aclose())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def __enter__(self) -> Blocking:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if not callable(method):
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            return self._each(result) if inspect.isasyncgen(result) else self._loop.run_until_complete(result)

        return call

    def _each(self, source: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self._loop.run_until_complete(source.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run_until_complete(source.aclose())


class Case(unittest.TestCase):
    """A test of one of the clients, with a namespace of its own on a node that tests share."""

    make: Any  # Client or Blocking
    node: Node
    token: str | None = None
    _names = 0

    def client(self, addresses: str | None = None, **options: Any) -> Any:
        client = self.make(addresses or self.node.url, **{"agent": "agent-7", **options})
        self.addCleanup(client.close)
        return client

    def namespace(self, client: Any) -> str:
        Case._names += 1
        name = f"team-{Case._names}"
        client.create_namespace(name)
        return name

    def proxy(self, cut: Callable[[bytes], int | None] = lambda answer: None) -> Proxy:
        proxy = Proxy(self.node.address, cut)
        self.addCleanup(proxy.close)
        return proxy


def both(case: type) -> tuple[type, type]:
    """The tests of a class, for either client."""
    blocking = type(case.__name__ + "OfClient", (case, Case), {"make": mneme.Client, "__module__": case.__module__})
    asynchronous = type(case.__name__ + "OfAsyncClient", (case, Case), {"make": Blocking, "__module__": case.__module__})
    return blocking, asynchronous
