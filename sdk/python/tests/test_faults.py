"""Answers that are lost, nodes that are away, TLS and tokens."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import socket
import subprocess
import tempfile
import threading
import unittest
import unittest.mock
from typing import Callable, Sequence

import mneme

from . import harness


def setUpModule() -> None:
    harness.Case.node = harness.Node()


def tearDownModule() -> None:
    harness.Case.node.stop()


def first(times: int) -> Callable[[bytes], int | None]:
    """Cuts the first answers before a byte of them has arrived: the node has done what it was asked."""
    left = [times]

    def cut(answer: bytes) -> int | None:
        if left[0] == 0:
            return None
        left[0] -= 1
        return 0

    return cut


class Faults:
    def test_lost_answer_of_a_capture_counts_once(self) -> None:
        direct = self.client()
        ns = self.namespace(direct)
        proxy = self.proxy(first(1))
        kept = self.client(proxy.url).capture(ns, "said once")
        self.assertEqual((kept.status, proxy.connections), ("duplicate", 2))
        self.assertEqual([r.record_id for r in direct.list(ns).records], [kept.record_id])

    def test_lost_answer_of_a_batch_counts_once(self) -> None:
        direct = self.client()
        ns = self.namespace(direct)
        answer = self.client(self.proxy(first(1)).url).capture_batch(ns, [mneme.Capture(text="a"), mneme.Capture(text="b", id="mine")])
        self.assertEqual([r.status for r in answer.results], ["duplicate", "duplicate"])
        self.assertEqual(len(direct.list(ns).records), 2)

    def test_lost_answer_of_a_revision_counts_once(self) -> None:
        direct = self.client()
        ns = self.namespace(direct)
        kept = direct.capture(ns, "first")
        revised = self.client(self.proxy(first(1)).url).revise(ns, kept.record_id, text="second")
        self.assertEqual((revised.version, len(direct.history(ns, kept.record_id).versions)), (2, 2))

    def test_lost_answer_of_a_change_of_the_graph_counts_once(self) -> None:
        direct = self.client()
        ns = self.namespace(direct)
        proxy = self.proxy(first(1))
        ann = mneme.GraphEntity(name="Ann", entityType="person", observations=[])
        changed = self.client(proxy.url).change_graph(ns, [mneme.GraphOperation(create_entities=[ann])])
        self.assertEqual((changed.status, changed.results[0].entities, proxy.connections), ("duplicate", [ann], 2))
        client = self.client(self.proxy(first(100)).url)
        with self.assertRaises(mneme.OutcomeUnknown) as caught:
            client.change_graph(ns, [mneme.GraphOperation(delete_entities=["Ann"])], id="g-1")
        self.assertIn("the same id, g-1", caught.exception.hint)
        self.assertEqual(direct.read_graph(ns).entities, [])

    def test_lost_answer_of_a_forget_is_unknown(self) -> None:
        direct = self.client()
        ns = self.namespace(direct)
        kept = direct.capture(ns, "first")
        proxy = self.proxy(first(1))
        with self.assertRaises(mneme.OutcomeUnknown) as caught:
            self.client(proxy.url).forget(ns, kept.record_id)
        self.assertIn("look whether it happened", caught.exception.hint)
        self.assertEqual(proxy.connections, 1)
        with self.assertRaises(mneme.NotFound):
            direct.get(ns, kept.record_id)

    def test_all_answers_lost(self) -> None:
        direct = self.client()
        ns = self.namespace(direct)
        client = self.client(self.proxy(first(100)).url)
        with self.assertRaises(mneme.OutcomeUnknown) as caught:
            client.capture(ns, "said once", id="k-1")
        self.assertIn("the same id, k-1", caught.exception.hint)
        self.assertEqual(direct.capture(ns, "said once", id="k-1").status, "duplicate")
        with self.assertRaises(mneme.Unavailable):
            client.search(ns, "x")

    def test_read_goes_on_at_the_next_node(self) -> None:
        direct = self.client()
        ns = self.namespace(direct)
        direct.capture(ns, "found all the same")
        client = self.client(f"{self.proxy(first(1)).url},{self.node.url}")
        self.assertEqual(client.search(ns, "found").results[0].text, "found all the same")
        self.assertEqual(client.address, self.node.url)

    def test_node_that_is_away(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            away = f"127.0.0.1:{listener.getsockname()[1]}"
        with self.assertRaises(mneme.Unavailable) as caught:
            self.client(away).status()
        self.assertIn(f"is `memnode` running at {away}", caught.exception.hint)
        client = self.client([away, self.node.url])
        ns = self.namespace(client)  # a write that has not left is sent to the next one
        self.assertEqual(client.capture(ns, "here").status, "created")
        self.assertEqual(client.address, self.node.url)
        with self.assertRaises(mneme.Unavailable) as caught:
            self.client([away, away]).status()
        self.assertIn("any of these nodes", caught.exception.hint)

    def test_node_that_refuses_for_now(self) -> None:
        busy = Answering(503, {"type": "about:blank", "title": "", "status": 503, "detail": "no leader", "code": "unavailable"})
        self.addCleanup(busy.close)
        with self.assertRaises(mneme.Unavailable) as caught:
            self.client(busy.url).status()
        self.assertEqual((caught.exception.message, caught.exception.retry_after), ("no leader", 7.0))
        client = self.client([busy.url, self.node.url])
        self.assertEqual(client.capture(self.namespace(self.client()), "here").status, "created")
        client = self.client([busy.url, self.node.url])
        with self.assertRaises(mneme.Unavailable):  # it may have been begun
            client.create_namespace("perhaps")

    def test_what_is_no_memnode(self) -> None:
        for status, code in ((404, "not_found"), (502, "unavailable"), (302, "unavailable"), (500, "internal"), (418, "invalid")):
            other = Answering(status, "<html>")
            self.addCleanup(other.close)
            with self.assertRaises(mneme.MnemeError) as caught:
                self.client(other.url).status()
            self.assertEqual((caught.exception.code, caught.exception.status), (code, status))
        other = Answering(200, {"hello": "world"})
        self.addCleanup(other.close)
        with self.assertRaises(mneme.InternalError):
            self.client(other.url).status()

    def test_portals_answer_passed_for_a_success(self) -> None:
        for document in ("{}", "null", "[]", '"ok"', '{"status":"ok","message":"log in first"}', "<html>"):
            portal = Answering(200, document)
            self.addCleanup(portal.close)
            client = self.client(portal.url)
            writes: list[Callable[[], object]] = [
                lambda: client.capture("a", "x"),
                lambda: client.capture_batch("a", [mneme.Capture(text="x")]),
                lambda: client.revise("a", "r", text="x"),
                lambda: client.forget("a", "r"),
                lambda: client.change_graph("a", [mneme.GraphOperation(delete_entities=["Ann"])]),
                lambda: client.create_namespace("a"),
                lambda: client.delete_namespace("a"),
            ]
            for write in writes:
                with self.assertRaises(mneme.OutcomeUnknown) as unknown:
                    write()
                self.assertTrue(unknown.exception.foreign)
            reads: list[Callable[[], object]] = [lambda: client.get("a", "r"), lambda: client.search("a", "x"), client.status]
            for read in reads:
                with self.assertRaises(mneme.InternalError) as other:
                    read()
                self.assertTrue(other.exception.foreign)

    def test_portals_answer_passed_for_a_stream(self) -> None:
        for media in ("", "text/html", "application/json", "text/plain; charset=utf-8"):
            for body in ("", "<html>", "{}"):
                portal = Answering(200, body, media=media)
                self.addCleanup(portal.close)
                client = self.client(portal.url)
                for read in (client.export, client.export_graph, client.events, lambda ns: client.events(ns, follow=False)):
                    with self.assertRaises(mneme.Unavailable) as caught:
                        list(read("a"))
                    self.assertTrue(caught.exception.foreign)
                    self.assertIn("what answered is no memnode: it sent " + (media or "nothing"), caught.exception.message)
                    self.assertIn("is that a memnode?", caught.exception.hint)
                self.assertEqual(portal.asked, 4)
        direct = self.client()
        ns = self.namespace(direct)
        direct.capture(ns, "found all the same")
        client = self.client([portal.url, self.node.url])
        self.assertEqual([line.text for line in client.export(ns)], ["found all the same"])
        self.assertEqual(client.address, self.node.url)
        empty = Answering(200, "", media="Application/X-NDJSON ; charset=utf-8")
        self.addCleanup(empty.close)
        self.assertEqual(list(self.client(empty.url).export("a")), [])

    def test_half_a_line_passed_for_the_end_of_an_export(self) -> None:
        for body in ('{"record_id":"r","text":"x"', "<html>\n"):
            cut = Answering(200, body, media="application/x-ndjson")
            self.addCleanup(cut.close)
            with self.assertRaises(mneme.Unavailable) as caught:
                list(self.client(cut.url).export("a"))
            self.assertFalse(caught.exception.foreign)

    def test_feed_outlasts_a_portal(self) -> None:
        event = 'id: p0.0.{0}.0\ndata: {{"id":"e{0}","type":"t","source":"s","specversion":"1.0"}}\n\n'
        stream = "text/event-stream"
        portal = Answering(200, "<html>", media="text/html", first=[(200, event.format(1), stream), (403, "<html>", ""), (200, "", ""), (200, event.format(2), stream)])
        self.addCleanup(portal.close)
        with unittest.mock.patch("mneme._core.Feed.PAUSE", 0.001):
            feed = self.client(portal.url).events("a")
            self.assertEqual([next(feed).id, next(feed).id], ["e1", "e2"])
            with self.assertRaises(mneme.Unavailable) as caught:
                next(feed)
        self.assertTrue(caught.exception.foreign)

    def test_proxy_settled_a_lost_answer(self) -> None:
        for status in (400, 403, 404, 409, 410, 413):
            proxy = Answering(status, "<html>", lost=1)
            self.addCleanup(proxy.close)
            with self.assertRaises(mneme.OutcomeUnknown) as unknown:
                self.client(proxy.url).capture("a", "x", id="k-1")
            self.assertEqual(unknown.exception.status, 0)
        node = Answering(413, {"type": "about:blank", "title": "", "status": 413, "detail": "too long", "code": "too_large"}, lost=1)
        self.addCleanup(node.close)
        with self.assertRaises(mneme.TooLarge) as own:
            self.client(node.url).capture("a", "x")
        self.assertFalse(own.exception.foreign)

    def test_json_of_others_passed_for_a_memnodes(self) -> None:
        for document in ({"code": "gone", "message": "no"}, {"code": "gone", "status": 404}, {"type": "about:blank", "code": "gone", "status": 410}):
            other = Answering(404, document)
            self.addCleanup(other.close)
            with self.assertRaises(mneme.NotFound) as caught:
                self.client(other.url).status()
            self.assertTrue(caught.exception.foreign)
            self.assertIn("answered 404", caught.exception.message)

    def test_node_that_never_answers(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = self.client(f"127.0.0.1:{listener.getsockname()[1]}", timeout=0.2)
            with self.assertRaises(mneme.TimedOut):
                client.status()

    def test_idle_connection_that_the_node_has_ended(self) -> None:
        proxy = self.proxy()
        client = self.client(proxy.url)
        ns = self.namespace(client)
        kept = client.capture(ns, "x")
        for connection in list(proxy._open):
            harness._end(connection)
        self.assertEqual(client.forget(ns, kept.record_id).record_id, kept.record_id)

    def test_feed_goes_on_where_it_broke(self) -> None:
        direct = self.client()
        ns = self.namespace(direct)
        kept = [direct.capture(ns, f"event {n}") for n in range(6)]

        def cut(answer: bytes) -> int | None:  # behind the second event of each connection
            parts = answer.split(b"\n\n")
            return sum(len(part) + 2 for part in parts[:2]) + 5 if answer.count(b"data: ") > 2 else None

        proxy = self.proxy(cut)
        feed = self.client(proxy.url).events(ns, from_="p0.0.0.0")
        seen = [next(feed) for _ in range(7)]
        feed.close()
        self.assertEqual([event.subject for event in seen], ["", *(k.record_id for k in kept)])
        self.assertGreaterEqual(proxy.connections, 3)

    def test_feed_of_a_node_that_stays_away(self) -> None:
        direct = self.client()
        ns = self.namespace(direct)
        direct.capture(ns, "event")
        proxy = self.proxy()
        client = self.client(proxy.url)
        feed = client.events(ns, from_="p0.0.0.0")
        next(feed)
        next(feed)
        proxy.close()
        with unittest.mock.patch("mneme._core.Feed.PAUSE", 0.001), self.assertRaises(mneme.Unavailable):
            next(feed)

    def test_feed_ends_when_its_client_is_closed(self) -> None:
        direct = self.client()
        ns = self.namespace(direct)
        direct.capture(ns, "event")
        seen: list[str] = []

        async def followed() -> None:
            client = mneme.AsyncClient(self.node.url, agent="agent-7")
            two = asyncio.Event()

            async def follow() -> None:
                async for event in client.events(ns, from_="p0.0.0.0"):
                    seen.append(event.type)
                    if len(seen) == 2:
                        two.set()

            task = asyncio.create_task(follow())
            await asyncio.wait_for(two.wait(), harness.PATIENCE)
            await client.aclose()
            await asyncio.wait_for(task, harness.PATIENCE)

        if self.make is not mneme.Client:
            asyncio.run(followed())
        else:
            feed = direct.events(ns, from_="p0.0.0.0")
            seen = [next(feed).type for _ in range(2)]
            reader = threading.Thread(target=lambda: seen.extend(event.type for event in feed), daemon=True)
            reader.start()
            direct.close()
            reader.join(harness.PATIENCE)
            self.assertFalse(reader.is_alive())
            self.assertEqual(direct.namespace(ns).name, ns)  # it can be used again
        self.assertEqual(len(seen), 2)

    def test_timeout_is_a_time(self) -> None:
        for timeout in (0, -1, float("nan"), float("inf"), None, "1"):
            with self.assertRaises(mneme.Invalid):
                self.make(self.node.url, timeout=timeout)

    def test_tls_and_token(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            certs = f"{folder}/certs"
            command = [harness.program("memctl"), "cluster", "certs", "--out", certs, "--server", "mneme", "--client", "agents"]
            subprocess.run(command, check=True, capture_output=True)
            clients = f"{certs}/clients"
            node = harness.Node(
                "--auth", "token", "--tls-cert", f"{clients}/mneme.crt", "--tls-key", f"{clients}/mneme.key",
                "--tls-client-ca", f"{clients}/ca.crt",
            )  # fmt: skip
            self.addCleanup(node.stop)
            token = (node.folder / "data" / "keys" / "operator.token").read_text().strip()
            own = {"cert_file": f"{clients}/agents.crt", "key_file": f"{clients}/agents.key"}
            client = self.client(node.url, ca_file=f"{clients}/ca.crt", token=token, **own)
            kept = client.capture("default", "sealed on the way")
            self.assertEqual(next(client.events("default", from_="p0.0.0.0")).type, "io.mneme.namespace.created.v1")
            self.assertEqual(client.get("default", kept.record_id).text, "sealed on the way")
            with self.assertRaises(mneme.Unauthenticated):
                self.client(node.url, ca_file=f"{clients}/ca.crt", token="wrong", **own).status()
            with self.assertRaises(mneme.Unavailable) as caught:
                self.client(node.url, token=token, **own).status()
            self.assertIn("ca_file", caught.exception.hint)
            with self.assertRaises(mneme.MnemeError):
                self.client(node.url, ca_file=f"{clients}/ca.crt", token=token).status()
            with self.assertRaises(mneme.Unavailable) as caught:
                self.client(node.url.replace("https", "http"), token=token).status()
            self.assertIn("https://", caught.exception.hint)
            with self.assertRaises(mneme.Invalid):
                self.client(node.url, ca_file=f"{folder}/none.crt")
            with self.assertRaises(mneme.Invalid):
                self.client(node.url, cert_file=own["cert_file"])


FaultsOfClient, FaultsOfAsyncClient = harness.both(Faults)
del Faults


class Cancelling(unittest.IsolatedAsyncioTestCase):
    async def test_cancelled_call_leaves_no_connection(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            async with mneme.AsyncClient(f"127.0.0.1:{listener.getsockname()[1]}") as client:
                call = asyncio.create_task(client.status())
                connection, _ = await asyncio.get_running_loop().run_in_executor(None, listener.accept)
                with connection:
                    await asyncio.get_running_loop().run_in_executor(None, connection.recv, 1)
                    call.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await call
                    connection.settimeout(harness.PATIENCE)
                    with contextlib.suppress(ConnectionResetError):  # how an aborted connection may end
                        while await asyncio.get_running_loop().run_in_executor(None, connection.recv, 65536):
                            pass

    async def test_many_calls_side_by_side(self) -> None:
        async with mneme.AsyncClient(harness.Case.node.url, agent="agent-7") as client:
            kept = await asyncio.gather(*(client.capture("default", f"side by side {n}") for n in range(50)))
            self.assertEqual(len({k.record_id for k in kept}), 50)


class Addresses(unittest.TestCase):
    def test_addresses(self) -> None:
        for text, want in {
            "": "http://127.0.0.1:8787",
            ":9000": "http://127.0.0.1:9000",
            "node": "http://node:8787",
            "tls://node": "https://node:8787",
            "https://node/v1/": "https://node:443",
            "http://node:1/mneme": "http://node:1/mneme",
            "[::1]:5": "http://[::1]:5",
        }.items():
            self.assertEqual(mneme.Client(text).address, want)
        for text in ("ftp://node", "http://", "node:port", "http://a?b", "a,,b", "http://user@host"):
            with self.assertRaises(mneme.Invalid, msg=text):
                mneme.Client(text)


class Answering:
    """Answers every request with the same, behind those that come first; the answers to the first ones are lost."""

    def __init__(self, status: int, document: object, lost: int = 0, media: str = "", first: Sequence[tuple[int, str, str]] = ()) -> None:
        left = [lost]
        always = (status, document if isinstance(document, str) else json.dumps(document), media)
        answers = list(first)
        self.asked = 0
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if left[0] > 0:
                    left[0] -= 1
                    self.close_connection = True
                    return
                owner.asked += 1
                code, text, kind = answers.pop(0) if answers else always
                body = text.encode()
                self.send_response(code)
                if kind:
                    self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Retry-After", "7")
                self.send_header("Connection", "close")  # which this server does
                self.send_header("Location", "http://127.0.0.1:1/")
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_PATCH = do_DELETE = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(harness.PATIENCE)
