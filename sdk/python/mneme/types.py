"""What the node takes and answers, written from its OpenAPI document by test/sdk. Do not edit.

Fields that a newer node adds are left out; fields that an answer leaves out are empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Code = Literal["conflict", "forbidden", "gone", "internal", "invalid", "log_diverged", "lost_position",
    "no_space", "not_found", "outcome_unknown", "overloaded", "quota", "stale_position", "timeout",
    "too_large", "unauthenticated", "unavailable"]
Consistency = Literal["local", "linearizable"]
ItemStatus = Literal["created", "duplicate", "conflict", "rejected"]
Kind = Literal["preference", "fact", "decision", "error", "practice", "tool-usage", "observation", "message",
    "other"]
Mode = Literal["hybrid", "vector", "text"]
Origin = Literal["capture", "import", "hook", "derived"]
Purpose = Literal["inject"]
Scope = Literal["team", "agent"]
Syntax = Literal["plain"]
Wait = Literal["accepted", "applied", "searchable"]


@dataclass(frozen=True, kw_only=True)
class AuditPage:
    """AuditPage is one page of audit rows, oldest first."""
    rows: list[AuditRow]
    cursor: str = ""
    position: str


@dataclass(frozen=True, kw_only=True)
class AuditRow:
    """AuditRow says what one event did."""
    position: str

    #: sealed_at
    at: datetime
    type: str
    event_id: str = ""
    agent: str = ""
    record_id: str = ""
    scope: Scope | None = None
    outcome: str

    #: SHA-256 of the sealed event, hex
    hash: str
    system: bool = False
    namespace: str = ""


@dataclass(frozen=True, kw_only=True)
class AuditedRead:
    """AuditedRead is a read that a namespace has audited: who was given which memories, and what for. It names
    them, and holds no word of them or of the query.
    """

    #: of its event
    position: str
    event_id: str

    #: when the event was sealed, which is before the answer was given
    at: datetime
    namespace: str

    #: that was reading, as it said
    agent: str = ""

    #: of what was given; a read of both scopes is two of these
    scope: Scope
    purpose: Purpose
    consistency: Consistency

    #: the position that the answer was read at
    read_at: str

    #: `query_hash` is a hash of the query under a key of the namespace, in hex: equal queries have equal
    #: hashes. Empty where a vector was all that was asked with.
    query_hash: str = ""

    #: in the order of the answer
    given: list[Given]


@dataclass(frozen=True, kw_only=True)
class AuditedReadPage:
    """AuditedReadPage is one page of audited reads, newest first. A page may have fewer than were asked for, or
    none, and still a cursor: it looks into a few thousand reads at most.
    """
    reads: list[AuditedRead]
    cursor: str = ""
    position: str


@dataclass(frozen=True, kw_only=True)
class Capture:
    """Capture is what an agent wants remembered."""

    #: Your own id for it, with which it is safe to send again.
    id: str = ""

    #: Who says it.
    agent: str = ""

    #: The memory, at most 256 KiB.
    text: str

    #: What sort of memory it is; other unless said.
    kind: Kind | None = None

    #: Of who spoke, such as user or assistant.
    role: str = ""

    #: A name of its own: mem://<namespace>/<path>, or the path alone.
    uri: str = ""

    #: Words to filter by; a filter wants all of its tags.
    tags: list[str] | None = None

    #: What the memory is part of.
    conversation: str = ""

    #: Whose personal data it is: the unit of erasure.
    subject: str = ""

    #: team: everyone in the namespace sees it; agent: only its agent.
    scope: Scope | None = None

    #: How much it matters.
    importance: float | None = None

    #: When it happened; when it was captured unless said.
    occurred_at: datetime | None = None

    #: The records that it was made of.
    derived_from: list[str] | None = None

    #: A JSON object of at most 16 KiB, given back as it is.
    metadata: Any | None = None


@dataclass(frozen=True, kw_only=True)
class CaptureResponse:
    """CaptureResponse answers a capture: one result an item, in order. `position` is that of the last event of
    the batch.
    """
    position: str
    results: list[CaptureResult]
    vectors: str = ""


@dataclass(frozen=True, kw_only=True)
class CaptureResult:
    """CaptureResult is the outcome of one item."""

    #: the client's id, if it gave one
    id: str = ""
    record_id: str = ""
    position: str = ""
    status: ItemStatus

    #: "pending" when wait=searchable ran out
    vectors: str = ""
    error: ItemError | None = None


@dataclass(frozen=True, kw_only=True)
class CertificateStatus:
    """CertificateStatus is a certificate that a node shows."""

    #: "clients" or "nodes"
    for_: str
    expires_at: datetime

    #: `clients_verified` says that a client must show a certificate, too.
    clients_verified: bool = False


@dataclass(frozen=True, kw_only=True)
class ClusterCopy:
    """ClusterCopy is what the log server of one node holds of a shard's log. All zero: it has no copy, or is no
    part of the node.
    """

    #: sequence of the last frame
    last: int

    #: `current`: it has what was agreed on, as far as that server knows. A copy is whole if it is current and
    #: its last frame is the log's.
    current: bool

    #: `checked_at` is when the node last read the files of its copies and found them sound; zero if it has
    #: not since its start.
    checked_at: datetime | None = None

    #: what does not check in them
    damage: str = ""


@dataclass(frozen=True, kw_only=True)
class ClusterNode:
    """ClusterNode is one node of a cluster."""
    id: str

    #: the id and what the node drew for its data directory
    name: str = ""

    #: where the other nodes reach it
    address: str
    role: str

    #: it answered in time
    reachable: bool

    #: `why` it does not answer, or takes no part though it does, in a few words that follow its name:
    #: "listens and does not answer". Empty where all is well.
    why: str = ""

    #: it leads nothing, because it was asked not to
    drained: bool = False


@dataclass(frozen=True, kw_only=True)
class ClusterReplica:
    """ClusterReplica is what one node holds of a shard."""
    node: str
    position: str
    state_hash: str

    #: `halted` is why it applies nothing; mostly "".
    halted: str = ""

    #: `behind` is how many frames of the log it lacks, against the one that has most.
    behind: int

    #: `log` is the node's own copy of the log.
    log: ClusterCopy


@dataclass(frozen=True, kw_only=True)
class ClusterShard:
    """ClusterShard is one shard with its replicas."""
    id: int

    #: a node's id; "" = nobody leads, as far as is known
    leader: str
    term: int

    #: none where the log is on an external NATS
    copies: LogCopies | None = None

    #: of the nodes that answered
    replicas: list[ClusterReplica]

    #: `writes_stopped` is why the shard takes no writes now; none where it takes them.
    writes_stopped: WritesStopped | None = None


@dataclass(frozen=True, kw_only=True)
class ClusterStatus:
    """ClusterStatus describes a cluster as one of its nodes sees it now."""
    cluster_id: str
    nodes: list[ClusterNode]
    shards: list[ClusterShard]


@dataclass(frozen=True, kw_only=True)
class CopyStatus:
    """CopyStatus says how the files are in which a node among others keeps its own copy of the log, and what the
    log's servers have agreed on.
    """

    #: they are being read
    running: bool = False

    #: when they were last found sound
    checked_at: datetime | None = None

    #: what does not check
    damage: str = ""

    #: since when that is known
    found_at: datetime | None = None

    #: `waits` is what keeps the node from taking its copy from the others.
    waits: str = ""


@dataclass(frozen=True, kw_only=True)
class Correction:
    """Correction is a word of a query and what it was read as: a term that memories of the reader have. What a
    memory has of the term counts for the word, times `weight`, where that is more than what it has of the
    word itself.
    """

    #: as it stands in the query
    word: str
    read_as: str

    #: `kind` is beginning, part, edit, glued, split, alias, related, or common for a word that is known and
    #: rare; begins for a beginning that the query asks for with a star, and many, with nothing else, where
    #: more terms begin so than are looked for. A phrase is one that was found in no memory; `docs` is how
    #: many have its words otherwise, as far as they were read. With the weight 1 its words, which are
    #: `read_as`, were looked for in its place; without a weight nothing was, and `read_as` is the query
    #: without its quotes.
    kind: str
    weight: float

    #: edits
    distance: int = 0

    #: memories that have it, in the field where most do
    docs: int


@dataclass(frozen=True, kw_only=True)
class Deleted:
    """Deleted answers the deletion of a namespace."""
    name: str
    position: str


@dataclass(frozen=True, kw_only=True)
class EmbedderInfo:
    """EmbedderInfo names an embedder and its vector space."""
    provider: str
    model: str
    dimensions: int
    space: str


@dataclass(frozen=True, kw_only=True)
class EmbedderStatus:
    """EmbedderStatus says what turns a namespace's text into vectors, and how far a change of it has come.
    """
    namespace: str

    #: "ready" or "building"
    state: str
    embedder: EmbedderInfo
    records: int

    #: records that have vectors
    vectors: int
    pending_vectors: int
    building: SpaceBuilding | None = None

    #: spaces before, oldest first
    kept: list[SpaceKept]

    #: `last_switch` is what the last change of the embedder found before it.
    last_switch: SpaceComparison | None = None
    position: str


@dataclass(frozen=True, kw_only=True)
class ErasingStatus:
    """ErasingStatus says how far the removal of deleted namespaces from the node's files has come. They have
    left every answer before, and their keys are gone.
    """

    #: keys, readers, tables, state, caches, storage key, raft, files or end
    step: str
    since: datetime

    #: of the last attempt; it is tried again
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Event:
    """Event is a CloudEvents 1.0 event in JSON form: the shape of feeds, server-sent events, tail and export.
    """
    specversion: str
    id: str
    source: str
    type: str
    subject: str = ""
    time: datetime | None = None
    datacontenttype: str = ""
    data: Any = None
    position: str = ""


@dataclass(frozen=True, kw_only=True)
class Explain:
    """Explain accounts for a hit's score, which is 1 / (1 + exp(-`sum`)). `newer_than` is the older memory about
    the same thing that the part newer put the hit in front of, and `older_than` the newest that was put in
    front of the hit.
    """

    #: Σ Weight × Value
    sum: float
    parts: list[ExplainPart]
    terms: list[ExplainTerm] = field(default_factory=list)
    newer_than: str = ""
    older_than: str = ""


@dataclass(frozen=True, kw_only=True)
class ExplainPart:
    """ExplainPart is one addend of the sum."""
    source: str
    weight: float
    value: float

    #: what the value is made of: BM25, cosine
    raw: float


@dataclass(frozen=True, kw_only=True)
class ExplainTerm:
    """ExplainTerm is one query term's share of the BM25 score. Where the memory holds something that stands for
    the term, `read_as` is that and `kind` says why: the kind of a Correction, or form for the same word in
    another form.
    """
    term: str
    read_as: str = ""
    kind: str = ""
    score: float


@dataclass(frozen=True, kw_only=True)
class ExportLine:
    """ExportLine is one line of an export: a capture with the record's identity. It can be imported again.
    """
    record_id: str
    version: int
    position: str
    created_at: datetime
    origin: Origin | None = None

    #: CloudEvents source, if one was given
    source: str = ""

    #: the client's idempotency key
    id: str = ""
    agent: str = ""
    text: str
    kind: Kind | None = None
    role: str = ""
    uri: str = ""
    tags: list[str] = field(default_factory=list)
    conversation: str = ""
    subject: str = ""
    scope: Scope | None = None

    #: 0..1
    importance: float | None = None
    occurred_at: datetime | None = None
    derived_from: list[str] = field(default_factory=list)

    #: a JSON object
    metadata: Any = None


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Filter narrows a search. Empty fields do not filter. `since` and `until` are on occurred_at; `since` is
    inclusive, `until` exclusive.
    """

    #: Any of these agents.
    agents: list[str] | None = None

    #: Any of these kinds.
    kinds: list[Kind] | None = None

    #: Words to filter by; a filter wants all of its tags.
    tags: list[str] | None = None

    #: From this time on, by occurred_at.
    since: datetime | None = None

    #: Before this time, by occurred_at.
    until: datetime | None = None

    #: team: everyone in the namespace sees it; agent: only its agent.
    scope: Scope | None = None

    #: What the memory is part of.
    conversation: str = ""


@dataclass(frozen=True, kw_only=True)
class ForgetResponse:
    """ForgetResponse answers a forget."""
    record_id: str
    position: str


@dataclass(frozen=True, kw_only=True)
class Given:
    """Given is a version of a record that was given to a reader. Both stay when the record is forgotten or
    erased.
    """
    record_id: str
    version: int


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Graph is a part of a knowledge graph, in the order of creation: entities and, with a query or names, the
    relations of which either end is among them.
    """
    entities: list[GraphEntity]
    relations: list[GraphRelation]
    position: str


@dataclass(frozen=True, kw_only=True)
class GraphAdded:
    """GraphAdded says which observations of an entity are new."""
    entityName: str
    addedObservations: list[str]


@dataclass(frozen=True, kw_only=True)
class GraphChange:
    """GraphChange is carried out as a whole or not at all, in order, as one event."""

    #: Your own id for it, with which it is safe to send again.
    id: str = ""

    #: Who says it.
    agent: str = ""

    #: Whose personal data it is: the unit of erasure.
    subject: str = ""

    #: Carried out in order; each is one of its fields.
    operations: list[GraphOperation]


@dataclass(frozen=True, kw_only=True)
class GraphChanged:
    """GraphChanged answers a change: one result an operation, in order."""

    #: of the event; where nothing was written, where the graph was read
    position: str
    status: str
    results: list[GraphResult]


@dataclass(frozen=True, kw_only=True)
class GraphDeleted:
    """GraphDeleted counts what a deletion took away. The observations of a deleted entity are not counted.
    """
    entities: int = 0
    relations: int = 0
    observations: int = 0


@dataclass(frozen=True, kw_only=True)
class GraphDeletion:
    """GraphDeletion names observations to take from an entity."""

    #: The name of an entity.
    entityName: str

    #: What is known of it.
    observations: list[str]


@dataclass(frozen=True, kw_only=True)
class GraphEntity:
    """GraphEntity is a node of a namespace's knowledge graph. Its name is its identity. The JSON names are those
    of the official MCP memory server.
    """
    name: str
    entityType: str

    #: in the order in which they were added, each once; never None in answers
    observations: list[str]


@dataclass(frozen=True, kw_only=True)
class GraphLine:
    """GraphLine is one line of a graph that is read as a stream, an entity or a relation. Entities have the
    first three fields beside type, relations the others.
    """

    #: entity or relation
    type: str
    name: str = ""
    entityType: str = ""
    observations: list[str] = field(default_factory=list)
    from_: str = ""
    to: str = ""
    relationType: str = ""


@dataclass(frozen=True, kw_only=True)
class GraphObservations:
    """GraphObservations are observations to add to an entity that must be there."""

    #: The name of an entity.
    entityName: str

    #: What is to be known of it.
    contents: list[str]


@dataclass(frozen=True, kw_only=True)
class GraphOperation:
    """GraphOperation is one step of a change: exactly one of its fields is set, an empty list counts as set.
    """

    #: Those whose names are taken are passed over, and so is a name's second one here.
    create_entities: list[GraphEntity] | None = None

    #: Their ends need not be there.
    create_relations: list[GraphRelation] | None = None

    #: To entities that must be there. Those that an entity has are passed over.
    add_observations: list[GraphObservations] | None = None

    #: By name, with the relations at either end.
    delete_entities: list[str] | None = None

    #: By their exact texts.
    delete_observations: list[GraphDeletion] | None = None

    #: By from, to and relationType.
    delete_relations: list[GraphRelation] | None = None


@dataclass(frozen=True, kw_only=True)
class GraphRelation:
    """GraphRelation is an edge. Its ends need not be there. All three together are its identity."""
    from_: str
    to: str
    relationType: str


@dataclass(frozen=True, kw_only=True)
class GraphResult:
    """GraphResult is what one operation did; only the field of the operation is set."""

    #: that create_entities created
    entities: list[GraphEntity] = field(default_factory=list)

    #: that create_relations created
    relations: list[GraphRelation] = field(default_factory=list)

    #: by add_observations, one for each element of the request
    added: list[GraphAdded] = field(default_factory=list)

    #: by a deletion
    deleted: GraphDeleted | None = None


@dataclass(frozen=True, kw_only=True)
class GuardStatus:
    """GuardStatus is the state of the recall guard: ok, tripped or none."""
    state: str
    recall: float


@dataclass(frozen=True, kw_only=True)
class History:
    """History lists the versions of one record, oldest first."""
    record_id: str
    versions: list[Record]
    events: list[HistoryEvent]

    #: older events that would have made it too long; their versions can be read one by one
    omitted: int = 0
    position: str


@dataclass(frozen=True, kw_only=True)
class HistoryEvent:
    """HistoryEvent is one thing that happened to a record."""
    type: str
    event_id: str
    agent: str
    at: datetime
    version: int = 0
    position: str


@dataclass(frozen=True, kw_only=True)
class Hit:
    """Hit is one result of a search. Scores lie in 0..1. `namespace` is set where several were searched. Where a
    request names fields, only those are there.
    """
    namespace: str = ""

    #: record id
    id: str = ""

    #: the same, under the name that records give it
    record_id: str = ""
    uri: str = ""
    text: str = ""

    #: text is cut to max_text, or, where an answer had no room for more, the snippet
    truncated: bool = False
    snippet: str = ""
    start_line: int = 0
    end_line: int = 0
    kind: Kind | None = None
    agent: str = ""
    tags: list[str] = field(default_factory=list)
    occurred_at: datetime | None = None
    created_at: datetime | None = None
    metadata: Any = None
    conversation: str = ""
    version: int = 0
    score: float = 0.0
    vector_score: float = 0.0
    text_score: float = 0.0
    matched_by: list[str] = field(default_factory=list)
    position: str = ""
    scope: Scope | None = None
    explain: Explain | None = None


@dataclass(frozen=True, kw_only=True)
class ItemError:
    """ItemError says why one item of a batch failed."""
    code: Code
    detail: str
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class LeftOff:
    """LeftOff says what an answer would have had beyond its budget."""

    #: hits or records
    count: int

    #: how to get them
    hint: str


@dataclass(frozen=True, kw_only=True)
class LogCopies:
    """LogCopies says how many copies a shard's log has, one at a node."""

    #: `have` counts those that are whole, as far as the nodes that answered know.
    have: int

    #: `want` is how many the nodes that have a vote call for: with five nodes five, else three.
    want: int


@dataclass(frozen=True, kw_only=True)
class LogStatus:
    """LogStatus describes a shard's event log."""
    first: int
    last: int
    lost: int

    #: `unreachable` is why the node could not ask the log; `first`, `last` and `lost` say nothing then.
    unreachable: str = ""

    #: why writes are stopped
    diverged: str = ""

    #: `void` counts messages since the node's start that are no frames of the log's writer: they take a
    #: sequence and change nothing.
    void: int = 0

    #: `scrub` is the slow reading of the whole log.
    scrub: ScrubStatus | None = None

    #: `repair` says how far a repair is, in sequences, while there is one.
    repair: Progress | None = None


@dataclass(frozen=True, kw_only=True)
class Namespace:
    """Namespace describes one namespace."""
    name: str
    id: str
    created_at: datetime
    settings: dict[str, str]
    embedder: EmbedderInfo
    space: str
    records: int
    pending_vectors: int
    state_hash: str
    position: str


@dataclass(frozen=True, kw_only=True)
class NamespaceList:
    """NamespaceList is one page of the namespaces by name."""
    namespaces: list[Namespace]

    #: of the next page
    cursor: str = ""


@dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """NodeStatus is one node of the cluster."""
    id: str

    #: `name` is the id and what the node drew for its data directory; empty for a node on its own.
    name: str = ""

    #: `learner` says that it has no vote: it does not count for majorities.
    learner: bool = False
    role: str
    address: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Problem is an RFC 9457 problem document with Mneme's code and hint."""
    type: str
    title: str
    status: int
    detail: str
    code: Code
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress says how far a long administrative action has come. `total` is 0 while it is unknown. `unit` is
    what is counted, such as "events" or "bytes".
    """
    done: int
    total: int
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Record:
    """Record is one version of one memory, opened for a reader that may see it. Where a request names fields,
    only those are there.
    """
    record_id: str = ""
    namespace: str = ""
    uri: str = ""
    version: int = 0
    text: str = ""

    #: text is cut to max_text
    truncated: bool = False
    kind: Kind | None = None
    role: str = ""
    agent: str = ""
    tags: list[str] = field(default_factory=list)
    conversation: str = ""
    subject: str = ""
    scope: Scope | None = None
    origin: Origin | None = None
    importance: float | None = None
    occurred_at: datetime | None = None

    #: when this version was sealed
    created_at: datetime | None = None
    derived_from: list[str] = field(default_factory=list)
    metadata: Any = None

    #: the client's id
    id: str = ""

    #: CloudEvents source, if one was given
    source: str = ""
    position: str = ""

    #: only in history
    forgotten: bool = False


@dataclass(frozen=True, kw_only=True)
class RecordList:
    """RecordList is one page of records, newest first."""
    records: list[Record]

    #: "" = no more
    cursor: str = ""
    position: str

    #: of this page, for which the budget had no room
    left_off: LeftOff | None = None


@dataclass(frozen=True, kw_only=True)
class RevisionResponse:
    """RevisionResponse answers a revision."""
    record_id: str
    version: int
    position: str


@dataclass(frozen=True, kw_only=True)
class ScrubStatus:
    """ScrubStatus says how far the slow reading of the whole log is, in sequences, and how the last one ended.
    """
    running: bool
    done: int
    total: int

    #: when a pass last found the log sound
    finished_at: datetime | None = None

    #: what the last pass found
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class SearchResponse:
    """SearchResponse answers a search, best first, ties by id. It has the namespace, or the namespaces that were
    searched at once; their position is one for each of their shards, with commas between them, and good for
    at_least.
    """
    results: list[Hit]
    position: str
    took_ms: float
    mode: Mode
    namespace: str = ""
    namespaces: list[str] = field(default_factory=list)

    #: `corrections` are the words that were read as others too, in the query's order.
    corrections: list[Correction] = field(default_factory=list)

    #: for which the budget had no room
    left_off: LeftOff | None = None

    #: `nothing_found` says that there is no result. Where something matched and lay below the floor,
    #: `best_refused` is the best score of that.
    nothing_found: bool = False
    best_refused: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ShardStatus:
    """ShardStatus describes one shard on the answering node."""
    id: int
    leader: str
    epoch: int
    position: str
    state_hash: str
    pipeline_version: int
    log: LogStatus
    records: int
    pending_vectors: int
    halted: str = ""

    #: the event at which it has halted, if that is why
    stopped_at: str = ""

    #: `writes_stopped` is why the shard takes no writes now, as the node that leads it says; none where it
    #: takes them, and where that node was not asked.
    writes_stopped: WritesStopped | None = None

    #: `lacks` is how many frames of the log the state does not hold since a start without room on the disk.
    #: Nothing is read until there is room to apply them.
    lacks: int = 0

    #: `erasing` is there while what was deleted for good leaves the files.
    erasing: ErasingStatus | None = None


@dataclass(frozen=True, kw_only=True)
class SpaceBuilding:
    """SpaceBuilding is a vector space that is built beside the current one."""
    embedder: EmbedderInfo

    #: "filling", "comparing", "waiting"
    phase: str

    #: records that have vectors in it
    done: int
    total: int

    #: records with nothing in them that it can embed
    skipped: int
    records_per_second: float

    #: seconds to go; 0 = not known
    eta_s: float
    error: str = ""
    error_at: datetime | None = None
    retry_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class SpaceComparison:
    """SpaceComparison is what was found before a namespace changed its space."""
    at: datetime
    from_: EmbedderInfo
    to: EmbedderInfo
    records: int

    #: records with vectors in `from`
    old_vectors: int

    #: … and in `to`
    new_vectors: int

    #: records whose neighbours were looked for
    sample: int

    #: `recall` is the share of the sample's ten nearest, by an exact scan of the new space, that a search of
    #: it found.
    recall: float

    #: `agreement` is the share of the sample's ten nearest that both spaces give. Models differ, so this is
    #: for information.
    agreement: float


@dataclass(frozen=True, kw_only=True)
class SpaceKept:
    """SpaceKept is a space that a namespace had before."""
    embedder: EmbedderInfo

    #: living ones that have vectors in it
    records: int
    until: datetime


@dataclass(frozen=True, kw_only=True)
class Status:
    """Status describes a node and its shards."""
    cluster_id: str
    nodes: list[NodeStatus]
    shards: list[ShardStatus]

    #: `copy` is the answering node's own copy of the log; none where it keeps none beside others.
    copy: CopyStatus | None = None
    embedder: EmbedderInfo
    vector: VectorStatus
    auth: str

    #: `admin_socket` is the file through which the operator reaches the node without a token, on its machine
    #: only.
    admin_socket: str = ""

    #: `certificates` are those that the node shows; none without TLS.
    certificates: list[CertificateStatus] = field(default_factory=list)
    version: str
    dev: bool = False
    uptime_s: float


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Timeline is what surrounded a memory in time or in its conversation."""
    anchor: Record

    #: oldest first
    before: list[Record]

    #: oldest first
    after: list[Record]
    position: str

    #: on both sides, for which the budget had no room
    left_off: LeftOff | None = None


@dataclass(frozen=True, kw_only=True)
class VectorStatus:
    """VectorStatus names the vector engine and what its guard found."""
    engine: str
    recall_guard: GuardStatus


@dataclass(frozen=True, kw_only=True)
class WritesStopped:
    """WritesStopped is why a shard takes no writes, and what helps."""

    #: the id of the node that leads; "" = none does
    node: str = ""
    why: str
    hint: str = ""
