"""The client, for threads. Written from aio.py by tools/write_sync.py; do not edit."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any, Iterable, Iterator, Mapping, Sequence, TypeVar

from . import _sse, _wire, errors
from ._http import Transport
from ._core import DEFAULT_ADDRESS, Call, Core, Feed, Reply, lost, new_id
from .types import (
    AuditedReadPage,
    AuditPage,
    Capture,
    CaptureResponse,
    CaptureResult,
    ClusterStatus,
    Consistency,
    Deleted,
    EmbedderStatus,
    Event,
    ExportLine,
    Filter,
    ForgetResponse,
    Graph,
    GraphChange,
    GraphChanged,
    GraphLine,
    GraphOperation,
    History,
    Kind,
    Mode,
    Namespace,
    NamespaceList,
    Origin,
    Purpose,
    Record,
    RecordList,
    RevisionResponse,
    Scope,
    SearchResponse,
    Status,
    Syntax,
    Timeline,
    Wait,
)

T = TypeVar("T")


class Client(Core):
    """Talks to a node, or to the nodes of a cluster.

    ``addresses`` is "host:port" or a URL, or several, with commas between or in a sequence: the client
    talks to one for as long as that takes its calls, and goes on with the next when it does not.
    ``token`` is the operator token, if the node wants one. ``agent`` is who acts when a call does not say:
    the reader of reads, the author of captures, the actor of revisions. ``ca_file`` holds the authority of
    the nodes' certificates, instead of the system's; ``cert_file`` and ``key_file`` are the certificate that
    the client shows and its key, all in PEM. ``timeout`` is how many seconds a node may take to answer.

    Errors are ``MnemeError``. A capture whose answer was lost is sent again under the same id, and counts
    once. The client is a context manager; ``close`` closes its connections.
    """

    def __init__(
        self,
        addresses: str | Sequence[str] = DEFAULT_ADDRESS,
        *,
        token: str | None = None,
        agent: str | None = None,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        timeout: float = 60.0,
        user_agent: str = "mneme-python",
    ) -> None:
        super().__init__(
            addresses,
            token=token,
            agent=agent,
            ca_file=ca_file,
            cert_file=cert_file,
            key_file=key_file,
            timeout=timeout,
            user_agent=user_agent,
        )
        self._transport = Transport(self._ssl, timeout, len(self._nodes.list) > 1)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that are idle, and ends what is read as it comes: a feed that is followed
        is over then, and an export fails. Other calls under way are not interrupted.
        """
        self._transport.close()

    def _open(self, call: Call) -> Reply:
        """Carries a call out, as often and where it makes sense."""
        flow = self._flow(call)
        try:
            request = next(flow)
            while True:
                request = flow.send(self._transport.exchange(request))
        except StopIteration as end:
            reply: Reply = end.value
            return reply

    def _do(self, kind: type[T], call: Call) -> T:
        return self._result(kind, self._open(call), call)

    # Memories

    def capture(
        self,
        namespace: str,
        text: str,
        *,
        kind: Kind | None = None,
        role: str | None = None,
        uri: str | None = None,
        tags: Sequence[str] | None = None,
        conversation: str | None = None,
        subject: str | None = None,
        scope: Scope | None = None,
        importance: float | None = None,
        occurred_at: datetime | None = None,
        derived_from: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        agent: str | None = None,
        id: str | None = None,
        wait: Wait | None = None,
        origin: Origin | None = None,
    ) -> CaptureResult:
        """Remembers one thing, and returns once it can be found.

        ``id`` is your own id for it: the same id counts once, and the second time answers "duplicate".
        Without one, the client makes one up, so that a lost answer does no harm. ``wait`` says how far the
        write must have come: "accepted", "applied" (unless said) or "searchable".
        """
        item = Capture(
            id=id or "",
            agent=agent or self._agent or "",
            text=text,
            kind=kind,
            role=role or "",
            uri=uri or "",
            tags=tags,  # type: ignore[arg-type]
            conversation=conversation or "",
            subject=subject or "",
            scope=scope,
            importance=importance,
            occurred_at=occurred_at,
            derived_from=derived_from,  # type: ignore[arg-type]
            metadata=metadata,
        )
        answer = self._capture(namespace, item, None if id else new_id(), wait, origin)
        if len(answer.results) != 1:
            raise errors.InternalError(f"{self.address} answered {len(answer.results)} results for one capture")
        return answer.results[0]

    def capture_batch(
        self,
        namespace: str,
        items: Iterable[Capture],
        *,
        key: str | None = None,
        agent: str | None = None,
        wait: Wait | None = None,
        origin: Origin | None = None,
    ) -> CaptureResponse:
        """Remembers up to 1000 things with one request.

        It does not raise for items that fail: look at the ``status`` and ``error`` of each result, which are
        in the order of the items. Those without an id get ``key``/0, ``key``/1 and so on.
        """
        body = list(items)
        if not body:
            raise errors.Invalid("a batch needs at least one capture")
        answer = self._capture(namespace, body, key or new_id(), wait, origin, agent)
        if len(answer.results) != len(body):
            raise errors.InternalError(f"{self.address} answered {len(answer.results)} results for {len(body)} captures")
        return answer

    def _capture(
        self, namespace: str, body: Any, key: str | None, wait: Wait | None, origin: Origin | None, agent: str | None = None
    ) -> CaptureResponse:
        call = Call(
            "captureMemories",
            {"ns": namespace},
            {"wait": wait, "origin": origin},
            self._acts(agent, key=key),
            body,
            repeat=True,
        )
        return self._do(CaptureResponse, call)

    def search(
        self,
        namespace: str,
        query: str,
        *,
        limit: int | None = None,
        mode: Mode | None = None,
        min_score: float | None = None,
        all: bool | None = None,
        filter: Filter | None = None,
        as_of: str | None = None,
        at_least: str | None = None,
        consistency: Consistency | None = None,
        explain: bool | None = None,
        purpose: Purpose | None = None,
        syntax: Syntax | None = None,
        vector: Sequence[float] | None = None,
        parts: Mapping[str, bool] | None = None,
        max_text: int | None = None,
        fields: Sequence[str] | None = None,
        budget: int | None = None,
        as_: str | None = None,
    ) -> SearchResponse:
        """Finds memories by words and by meaning, best first.

        ``at_least`` is the position of a write that the answer must include. ``max_text``, ``fields`` and
        ``budget`` (tokens) make the answer fit the window of an agent. ``purpose="inject"`` says that the
        answer goes into a prompt as a block of memories; a namespace may have such reads audited.
        ``syntax="plain"`` says that the query is what somebody said: quotes, dashes and stars in it are no
        operators.
        """
        body = self._query(
            query=query, limit=limit, mode=mode, min_score=min_score, all=all, filter=filter, as_of=as_of,
            at_least=at_least, consistency=consistency, explain=explain, purpose=purpose, syntax=syntax, vector=vector,
            parts=parts, max_text=max_text, fields=fields, budget=budget, **{"as": as_ or self._agent},
        )  # fmt: skip
        return self._do(SearchResponse, Call("searchMemories", {"ns": namespace}, body=body))

    def search_namespaces(
        self,
        namespaces: Sequence[str],
        query: str,
        *,
        limit: int | None = None,
        mode: Mode | None = None,
        min_score: float | None = None,
        all: bool | None = None,
        filter: Filter | None = None,
        as_of: str | None = None,
        at_least: str | None = None,
        consistency: Consistency | None = None,
        explain: bool | None = None,
        purpose: Purpose | None = None,
        syntax: Syntax | None = None,
        vector: Sequence[float] | None = None,
        parts: Mapping[str, bool] | None = None,
        max_text: int | None = None,
        fields: Sequence[str] | None = None,
        budget: int | None = None,
        as_: str | None = None,
    ) -> SearchResponse:
        """Finds memories in several namespaces at once, ranked together; each hit says its namespace.

        The position of the answer is one for each shard concerned, and good for ``at_least``.
        """
        body = self._query(
            namespaces=list(namespaces), query=query, limit=limit, mode=mode, min_score=min_score, all=all,
            filter=filter, as_of=as_of, at_least=at_least, consistency=consistency, explain=explain,
            purpose=purpose, syntax=syntax, vector=vector, parts=parts, max_text=max_text, fields=fields, budget=budget, **{"as": as_ or self._agent},
        )  # fmt: skip
        return self._do(SearchResponse, Call("searchNamespaces", body=body))

    @staticmethod
    def _query(**fields: Any) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if value is not None}

    def get(
        self,
        namespace: str,
        id: str,
        *,
        version: int | None = None,
        as_: str | None = None,
        at_least: str | None = None,
        consistency: Consistency | None = None,
    ) -> Record:
        """The whole of one record, by its id, the first 6 or more characters of it, or its uri's path."""
        query = {"version": version, **self._reads(as_, at_least, consistency)}
        return self._do(Record, Call("getRecord", {"ns": namespace, "id": id}, query))

    def list(
        self,
        namespace: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        uri: str | None = None,
        kind: Kind | Sequence[Kind] | None = None,
        tag: str | Sequence[str] | None = None,
        agent: str | Sequence[str] | None = None,
        scope: Scope | None = None,
        conversation: str | None = None,
        purpose: Purpose | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        max_text: int | None = None,
        fields: Sequence[str] | None = None,
        budget: int | None = None,
        as_: str | None = None,
        at_least: str | None = None,
        consistency: Consistency | None = None,
    ) -> RecordList:
        """One page of records, newest first; go on with its ``cursor`` until that is empty."""
        query = {
            "cursor": cursor, "limit": limit, "uri": uri, "kind": kind, "tag": tag, "agent": agent, "scope": scope,
            "conversation": conversation, "purpose": purpose, "since": since, "until": until, "max_text": max_text,
            "fields": fields, "budget": budget, **self._reads(as_, at_least, consistency),
        }  # fmt: skip
        return self._do(RecordList, Call("listRecords", {"ns": namespace}, query))

    def revise(
        self,
        namespace: str,
        id: str,
        *,
        text: str | None = None,
        kind: Kind | None = None,
        role: str | None = None,
        uri: str | None = None,
        tags: Sequence[str] | None = None,
        conversation: str | None = None,
        importance: float | None = None,
        occurred_at: datetime | None = None,
        derived_from: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_version: int | None = None,
        as_: str | None = None,
        key: str | None = None,
    ) -> RevisionResponse:
        """Makes a new version of a record; what is not given stays as it is.

        With ``if_version`` it is a ``Conflict`` unless the record stands at that version. It is sent under
        ``key``, or one that the client makes up, so that it is made once though an answer is lost.
        """
        changed = {
            "text": text, "kind": kind, "role": role, "uri": uri, "tags": tags, "conversation": conversation,
            "importance": importance, "occurred_at": occurred_at, "derived_from": derived_from, "metadata": metadata,
        }  # fmt: skip
        call = Call(
            "reviseRecord",
            {"ns": namespace, "id": id},
            {},
            self._acts(as_, if_version, key or new_id()),
            self._query(**changed),
            repeat=True,
            sure=True,
        )
        return self._do(RevisionResponse, call)

    def forget(
        self, namespace: str, id: str, *, if_version: int | None = None, as_: str | None = None
    ) -> ForgetResponse:
        """Removes a record from every present answer; its history stays.

        It is never sent again by the client: a lost answer is ``OutcomeUnknown``.
        """
        headers = self._acts(as_, if_version)
        return self._do(ForgetResponse, Call("forgetRecord", {"ns": namespace, "id": id}, {}, headers, sure=True))

    def history(
        self,
        namespace: str,
        id: str,
        *,
        as_: str | None = None,
        at_least: str | None = None,
        consistency: Consistency | None = None,
    ) -> History:
        """Every version of a record, oldest first, also of a forgotten one."""
        query = self._reads(as_, at_least, consistency)
        return self._do(History, Call("getRecordHistory", {"ns": namespace, "id": id}, query))

    def timeline(
        self,
        namespace: str,
        id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        max_text: int | None = None,
        fields: Sequence[str] | None = None,
        budget: int | None = None,
        as_: str | None = None,
        at_least: str | None = None,
        consistency: Consistency | None = None,
    ) -> Timeline:
        """What surrounded a record: in its conversation if it has one, else among all that the agent may see."""
        query = {
            "before": before, "after": after, "max_text": max_text, "fields": fields, "budget": budget,
            **self._reads(as_, at_least, consistency),
        }  # fmt: skip
        return self._do(Timeline, Call("getTimeline", {"ns": namespace, "id": id}, query))

    def audit(
        self,
        namespace: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        from_: str | None = None,
        actor: str | None = None,
        type_: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        as_: str | None = None,
        at_least: str | None = None,
        consistency: Consistency | None = None,
    ) -> AuditPage:
        """One page of who did what, oldest first; go on with its ``cursor`` until that is empty."""
        query = {
            "cursor": cursor, "limit": limit, "from": from_, "actor": actor, "type": type_, "since": since, "until": until,
            **self._reads(as_, at_least, consistency),
        }  # fmt: skip
        return self._do(AuditPage, Call("getAudit", {"ns": namespace}, query))

    def audited_reads(
        self,
        namespace: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        agent: str | None = None,
        record: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        as_: str | None = None,
        at_least: str | None = None,
        consistency: Consistency | None = None,
    ) -> AuditedReadPage:
        """One page of who was given which memories for a prompt, newest first; go on with its ``cursor`` until
        that is empty. A namespace has such reads audited where its setting ``audit.injections`` is ``on``."""
        query = {
            "cursor": cursor, "limit": limit, "agent": agent, "record": record, "since": since, "until": until,
            **self._reads(as_, at_least, consistency),
        }  # fmt: skip
        return self._do(AuditedReadPage, Call("listAuditedReads", {"ns": namespace}, query))

    def export(
        self,
        namespace: str,
        *,
        as_: str | None = None,
        at_least: str | None = None,
        consistency: Consistency | None = None,
    ) -> Iterator[ExportLine]:
        """Every living record that the agent may see, oldest first, whole; ends with an error if it is not complete."""
        return self._lines(ExportLine, "exportMemories", namespace, self._reads(as_, at_least, consistency))

    def _lines(self, kind: type[T], operation: str, namespace: str, query: dict[str, Any]) -> Iterator[T]:
        """What a node answers as one JSON document a line."""
        call = Call(operation, {"ns": namespace}, query, accept="application/x-ndjson")
        address, _ = self._nodes.now()
        stream = (self._open(call)).stream
        rest = b""
        try:
            for chunk in stream.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    document = json.loads(line)
                    if "error" in document:
                        raise _wire.problem(document["error"], 0) or errors.InternalError("the export broke off")
                    value: T = _wire.decode(kind, document)
                    yield value
            if rest:
                raise ConnectionError("the answer broke off within a line")
        except (OSError, ValueError) as error:
            raise lost(call, address, error) from error
        finally:
            stream.close()

    def events(
        self,
        namespace: str,
        *,
        from_: str | None = None,
        follow: bool = True,
        as_: str | None = None,
        at_least: str | None = None,
        consistency: Consistency | None = None,
    ) -> Iterator[Event]:
        """Everything that is applied and that the agent may see, in order, each event once.

        It begins after the position ``from_``, or with what happens from now on; "p0.0.0.0" is the
        beginning. ``follow=False`` ends it at the present. A broken connection is opened again after the
        last event, at the next node if there are several, and what no memnode answers then is waited out. A
        feed that is followed ends when the client is closed.
        """
        closings = self._transport.closings
        query = {"follow": None if follow else False, "from": from_, **self._reads(as_, at_least, consistency)}
        feed = Feed(from_)
        while True:
            call = Call("followEvents", {"ns": namespace}, query, accept="text/event-stream")
            if feed.seen and feed.position:
                call.headers["Last-Event-ID"] = feed.position
            try:
                stream = (self._open(call)).stream
                address, turn = self._nodes.now()
                feed.connected = True
                parser = _sse.Parser()
                try:
                    if follow and self._transport.closings != closings:
                        return
                    for chunk in stream.chunks():
                        for message in parser.feed(chunk):
                            event = feed.take(message)
                            if event is not None:
                                yield event
                    if not follow:
                        return
                    raise ConnectionError("the node ended the stream")
                except OSError as error:
                    if follow and self._transport.closings != closings:
                        return
                    self._nodes.leave(turn)
                    raise lost(call, address, error) from error
                finally:
                    stream.close()
            except errors.MnemeError as error:
                time.sleep(feed.pause(error))
                if follow and self._transport.closings != closings:
                    return

    # The knowledge graph

    def change_graph(
        self,
        namespace: str,
        operations: Iterable[GraphOperation],
        *,
        subject: str | None = None,
        agent: str | None = None,
        id: str | None = None,
    ) -> GraphChanged:
        """Changes the knowledge graph of a namespace, as a whole or not at all; one result an operation, in order.

        It is ``NotFound``, and nothing is changed, where observations are added to an entity that is not
        there. ``id`` is your own id for the change: the same id counts once, and the second time answers
        "duplicate" with the results of the first. Without one, the client makes one up, so that a lost answer
        does no harm. ``subject`` is whose personal data the change adds; with one it may only add.
        """
        change = GraphChange(
            id=id or "", agent=agent or self._agent or "", subject=subject or "", operations=list(operations)
        )
        headers = self._acts(agent, key=id or new_id())
        call = Call("changeGraph", {"ns": namespace}, {}, headers, change, repeat=True)
        return self._do(GraphChanged, call)

    def read_graph(
        self,
        namespace: str,
        *,
        query: str | None = None,
        name: str | Sequence[str] | None = None,
        as_: str | None = None,
        at_least: str | None = None,
        consistency: Consistency | None = None,
    ) -> Graph:
        """The knowledge graph of a namespace, or a part of it, in the order of creation.

        ``query`` finds the entities that hold it, as a whole and in any case, in name, type or an
        observation; ``name`` opens the entities of these names, and passes over unknown ones. Either comes
        with the relations of which one end is among them. A graph that is too large for one answer is
        ``TooLarge``; ``export_graph`` reads any.
        """
        selected = {
            "query": None if query is None else [query],  # an empty one is sent too
            "name": [""] if name is not None and not name else name,  # no names are not the whole graph
        }
        asked = {**selected, **self._reads(as_, at_least, consistency)}
        return self._do(Graph, Call("readGraph", {"ns": namespace}, asked))

    def export_graph(
        self,
        namespace: str,
        *,
        after: str | None = None,
        as_: str | None = None,
        at_least: str | None = None,
        consistency: Consistency | None = None,
    ) -> Iterator[GraphLine]:
        """The whole knowledge graph, however large: the entities, then the relations, in the order of creation.

        With ``after`` it begins behind the entity of that name. It ends with an error if it is not complete.
        """
        asked = {"after": after, **self._reads(as_, at_least, consistency)}
        return self._lines(GraphLine, "exportGraph", namespace, asked)

    # Namespaces

    def namespaces(self) -> Sequence[Namespace]:
        """All namespaces that the caller may see, by name; the pages of the node are put together."""
        found: list[Namespace] = []
        cursor = ""
        while True:
            page = self.namespaces_page(cursor=cursor, limit=200)
            found.extend(page.namespaces)
            if page.cursor <= cursor:  # empty, or not further: they are names, which ascend
                return found
            cursor = page.cursor

    def namespaces_page(self, *, cursor: str | None = None, limit: int | None = None) -> NamespaceList:
        """One page of the namespaces, by name."""
        return self._do(NamespaceList, Call("listNamespaces", {}, {"cursor": cursor, "limit": limit}))

    def namespace(self, name: str) -> Namespace:
        """One namespace: its settings, its embedder, how many records it has."""
        return self._do(Namespace, Call("getNamespace", {"ns": name}))

    def create_namespace(
        self, name: str, *, settings: Mapping[str, str] | None = None, dry_run: bool | None = None
    ) -> Namespace:
        """Makes a namespace, a team's memory; ``Conflict`` if the name is taken."""
        body = self._query(name=name, settings=settings, dry_run=dry_run)
        return self._do(Namespace, Call("createNamespace", {}, {}, self._acts(), body))

    def change_namespace(
        self, name: str, settings: Mapping[str, str | None], *, dry_run: bool | None = None
    ) -> Namespace:
        """Changes settings; None resets one to its default."""
        body = self._query(settings=dict(settings), dry_run=dry_run)
        return self._do(Namespace, Call("changeNamespace", {"ns": name}, {}, self._acts(), body))

    def delete_namespace(self, name: str) -> Deleted:
        """Deletes a namespace with everything in it, for good."""
        return self._do(Deleted, Call("deleteNamespace", {"ns": name}, {}, self._acts()))

    def embedder(self, namespace: str) -> EmbedderStatus:
        """What turns the namespace's text into vectors, and how a change of it goes."""
        return self._do(EmbedderStatus, Call("getEmbedder", {"ns": namespace}))

    def switch_embedder(
        self, namespace: str, provider: str, *, model: str | None = None, dimensions: int | None = None
    ) -> EmbedderStatus:
        """Changes the embedder: vectors are built beside the present ones, then searches use them."""
        body = self._query(provider=provider, model=model, dimensions=dimensions)
        return self._do(EmbedderStatus, Call("switchEmbedder", {"ns": namespace}, {}, self._acts(), body))

    def cancel_embedder_switch(self, namespace: str) -> EmbedderStatus:
        """Gives up a change of the embedder that is under way."""
        return self._do(EmbedderStatus, Call("cancelEmbedderSwitch", {"ns": namespace}, {}, self._acts()))

    # The node

    def status(self, *, local: bool | None = None) -> Status:
        """The node, its shards and its embedder; ``local`` names this node only, not the others of its cluster."""
        return self._do(Status, Call("getStatus", {}, {"local": local}))

    def cluster(self) -> ClusterStatus:
        """The nodes of the cluster, and the replicas of each shard."""
        return self._do(ClusterStatus, Call("getCluster"))
