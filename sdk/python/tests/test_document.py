"""The client against the node's own description of itself."""

from __future__ import annotations

import dataclasses
import inspect
import json
import pathlib
import typing
import unittest
import urllib.request
from datetime import datetime, timezone
from typing import Any

import mneme
from mneme import _operations, _sse, _wire, aio, client, errors, types
from mneme._core import Call
from tools import write_sync

from . import harness

METHODS = {
    "cancelEmbedderSwitch": ["cancel_embedder_switch"],
    "captureMemories": ["capture", "capture_batch"],
    "changeGraph": ["change_graph"],
    "changeNamespace": ["change_namespace"],
    "createNamespace": ["create_namespace"],
    "deleteNamespace": ["delete_namespace"],
    "exportGraph": ["export_graph"],
    "exportMemories": ["export"],
    "followEvents": ["events"],
    "forgetRecord": ["forget"],
    "getAudit": ["audit"],
    "getCluster": ["cluster"],
    "getEmbedder": ["embedder"],
    "getNamespace": ["namespace"],
    "getRecord": ["get"],
    "getRecordHistory": ["history"],
    "getStatus": ["status"],
    "getTimeline": ["timeline"],
    "listAuditedReads": ["audited_reads"],
    "listNamespaces": ["namespaces", "namespaces_page"],
    "listRecords": ["list"],
    "readGraph": ["read_graph"],
    "reviseRecord": ["revise"],
    "searchMemories": ["search"],
    "searchNamespaces": ["search_namespaces"],
    "switchEmbedder": ["switch_embedder"],
}
"""The methods by which each operation is called."""

AGENT = {"as", "Mneme-Agent"}
"""Two names of one thing, of which a request needs one."""


class Recorded(Exception):
    """Carries a call instead of carrying it out."""

    def __init__(self, call: Call) -> None:
        super().__init__(call.operation)
        self.call = call


class Recorder(mneme.Client):
    """Makes no requests."""

    def _open(self, call: Call) -> Any:
        raise Recorded(call)


def sample(name: str) -> Any:
    """A value for an argument, other than what it is where it is not given."""
    values: dict[str, Any] = {
        "namespaces": ["a", "b"], "items": [mneme.Capture(text="x")], "tags": ["t"], "derived_from": ["d"], "fields": ["text"],
        "vector": [0.5], "kind": "fact", "settings": {"a": "b"}, "metadata": {"a": 1}, "parts": {"dates": False},
        "filter": mneme.Filter(kinds=["fact"]), "follow": False,
        "operations": [mneme.GraphOperation(delete_entities=["x"])], "importance": 0.5, "min_score": 0.5,
    }  # fmt: skip
    if name in ("since", "until", "occurred_at"):
        return datetime(2026, 1, 31, 8, tzinfo=timezone.utc)
    if name in ("all", "explain", "dry_run", "local"):
        return True
    if name in ("limit", "version", "if_version", "before", "after", "max_text", "budget", "dimensions"):
        return 3
    return values.get(name, f"some-{name.replace('_', '')}")


class Document(unittest.TestCase):
    document: Any

    @classmethod
    def setUpClass(cls) -> None:
        node = harness.Node()
        try:
            with urllib.request.urlopen(node.url + "/openapi.json") as answer:
                cls.document = json.load(answer)
        finally:
            node.stop()

    def operations(self) -> dict[str, tuple[str, str, Any]]:
        out = {}
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                if path.startswith("/v1/") and not path.startswith("/v1/admin/"):
                    out[operation["operationId"]] = (method.upper(), path, operation)
        return out

    def properties(self, schema: Any) -> set[str]:
        """The fields of a request's body."""
        if "oneOf" in schema:
            return self.properties(schema["oneOf"][0])
        return set(self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"])

    def test_every_operation_has_a_method(self) -> None:
        self.assertEqual(set(self.operations()), set(METHODS))
        self.assertEqual(set(self.operations()), set(_operations.OPERATIONS))
        for operation, (method, path, said) in self.operations().items():
            row = _operations.OPERATIONS[operation]
            named = {where: tuple(p["name"] for p in said.get("parameters", []) if p["in"] == where) for where in ("query", "header")}
            self.assertEqual((row.method, row.path, row.query, row.headers), (method, path, named["query"], named["header"]))

    def test_every_parameter_and_field_reaches_the_node(self) -> None:
        recorder = Recorder()
        for operation, (_, _, said) in self.operations().items():
            sent: set[str] = set()
            fields: set[str] = set()
            for name in METHODS[operation]:
                method = getattr(recorder, name)
                arguments = {p: sample(p) for p in inspect.signature(method).parameters}
                with self.assertRaises(Recorded) as caught:
                    result = method(**arguments)
                    for _ in result:  # a stream begins to read when it is asked for something
                        pass
                call = caught.exception.call
                self.assertEqual(call.operation, operation)
                request = recorder._request(call, recorder._nodes.list[0])
                query = request.target.partition("?")[2]
                sent |= {pair.partition("=")[0] for pair in query.split("&") if pair} | set(request.headers)
                self.assertNotIn("{", request.target)
                body = json.loads(request.body or b"{}")
                fields |= set(body[0] if isinstance(body, list) else body)
            wanted = {p["name"] for p in said.get("parameters", []) if p["in"] in ("query", "header")}
            wanted -= {"Last-Event-ID"}  # what from becomes when a stream is opened again
            if wanted & AGENT and sent & AGENT or "as" in fields:
                wanted -= AGENT
            self.assertLessEqual(wanted, sent, operation)
            if "requestBody" in said:
                schema = said["requestBody"]["content"]["application/json"]["schema"]
                self.assertEqual(self.properties(schema), fields, operation)
            else:
                self.assertEqual(fields, set(), operation)

    def test_every_answer_has_its_type(self) -> None:
        for operation, (_, _, said) in self.operations().items():
            for status, answer in said["responses"].items():
                for media in answer.get("content", {}).values():
                    name = media["schema"]["$ref"].rpartition("/")[2]
                    kind = getattr(types, name)
                    schema = self.document["components"]["schemas"][name]
                    self.assertEqual({f.name.rstrip("_") for f in dataclasses.fields(kind)}, set(schema["properties"]), name)
                    example = media.get("example")
                    if isinstance(example, dict):
                        self.assertIsInstance(_wire.decode(kind, example), kind)

    def test_codes(self) -> None:
        problem = self.document["components"]["schemas"]["Problem"]["properties"]["code"]
        self.assertEqual(set(problem["enum"]), set(errors.BY_CODE))
        self.assertEqual(set(problem["enum"]), set(typing.get_args(types.Code)))
        for code in problem["enum"]:
            error = _wire.problem({"type": "about:blank", "status": 400, "code": code, "detail": "d", "hint": "h"}, 400)
            self.assertEqual((error.code, error.message, error.hint, str(error)), (code, "d", "h", "d (h)"))
        self.assertIsInstance(_wire.problem({"type": "about:blank", "status": 400, "code": "of_a_newer_node", "title": "t"}, 400), errors.InternalError)


class Shape(unittest.TestCase):
    def test_sync_client_is_written_from_the_async_one(self) -> None:
        self.assertEqual((write_sync.PACKAGE / "client.py").read_text(), write_sync.sync(), "run python3 tools/write_sync.py")

    def test_everything_public_is_documented(self) -> None:
        public = [getattr(mneme, name) for name in mneme.__all__]
        for module in (mneme, aio, client, errors, types):
            self.assertTrue(module.__doc__)
        public += [kind for _, kind in inspect.getmembers(types, dataclasses.is_dataclass)]
        for thing in public:
            self.assertTrue(inspect.getdoc(thing), thing)
            for name, member in inspect.getmembers(thing, inspect.isfunction):
                if not name.startswith("_") and member.__module__.startswith("mneme"):
                    self.assertTrue(inspect.getdoc(member), f"{thing}.{name}")

    def test_annotations_mean_something(self) -> None:
        for kind in (mneme.Client, mneme.AsyncClient):
            for name, member in inspect.getmembers(kind, inspect.isfunction):
                hints = typing.get_type_hints(member, vars(inspect.getmodule(member)))
                self.assertLessEqual(set(inspect.signature(member).parameters) - {"self", "_"}, set(hints), name)
        for _, kind in inspect.getmembers(types, dataclasses.is_dataclass):
            typing.get_type_hints(kind)

    def test_no_dependencies(self) -> None:
        project = (pathlib.Path(mneme.__file__).parent.parent / "pyproject.toml").read_text()
        self.assertIn("dependencies = []", project)


class Wire(unittest.TestCase):
    def test_times(self) -> None:
        for text, want in {
            "2026-01-31T08:00:00Z": "2026-01-31T08:00:00+00:00",
            "2026-01-31T08:00:00.123456789Z": "2026-01-31T08:00:00.123456+00:00",
            "2026-01-31t08:00:00.5+02:00": "2026-01-31T08:00:00.500000+02:00",
        }.items():
            self.assertEqual(_wire.parse_time(text).isoformat(), want)
        for text in ("", "2026-01-31", "yesterday"):
            with self.assertRaises(ValueError):
                _wire.parse_time(text)
        self.assertEqual(_wire.format_time(_wire.parse_time("2026-01-31T08:00:00.5+02:00")), "2026-01-31T06:00:00.500000Z")

    def test_answers_of_a_newer_node(self) -> None:
        hit = _wire.decode(types.Hit, {"text": "x", "of_a_newer_node": 1, "score": 1, "tags": None})
        self.assertEqual((hit.text, hit.score, hit.tags, hit.occurred_at), ("x", 1.0, [], None))
        status = _wire.decode(types.CertificateStatus, {"for": "clients", "expires_at": "2026-01-31T08:00:00Z"})
        self.assertEqual(status.for_, "clients")

    def test_streams(self) -> None:
        text = "id: p1\r\ndata: a\ndata:b\n: comment\n\nid: p2\n\nevent: error\ndata: \u00e4\n\ndata: unfinished\n"
        want = [("p1", "", "a\nb"), ("p2", "", ""), ("", "error", "\u00e4")]
        for size in (1, 2, 7, 1000):
            parser, raw = _sse.Parser(), text.encode()
            got = [m for i in range(0, len(raw), size) for m in parser.feed(raw[i : i + size])]
            self.assertEqual([tuple(m) for m in got], want)
        with self.assertRaises(ValueError):
            list(_sse.Parser().feed(b"x" * (_sse.MAX_LINE + 1)))
