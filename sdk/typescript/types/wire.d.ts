// What the node takes and answers, written from its OpenAPI document by test/sdk. Do not edit.

export type Code =
  | "conflict"
  | "forbidden"
  | "gone"
  | "internal"
  | "invalid"
  | "log_diverged"
  | "lost_position"
  | "no_space"
  | "not_found"
  | "outcome_unknown"
  | "overloaded"
  | "quota"
  | "stale_position"
  | "timeout"
  | "too_large"
  | "unauthenticated"
  | "unavailable";

export type Consistency =
  | "local"
  | "linearizable";

export type ItemStatus =
  | "created"
  | "duplicate"
  | "conflict"
  | "rejected";

export type Kind =
  | "preference"
  | "fact"
  | "decision"
  | "error"
  | "practice"
  | "tool-usage"
  | "observation"
  | "message"
  | "other";

export type Mode =
  | "hybrid"
  | "vector"
  | "text";

export type Origin =
  | "capture"
  | "import"
  | "hook"
  | "derived";

export type Purpose =
  | "inject";

export type Scope =
  | "team"
  | "agent";

export type Syntax =
  | "plain";

export type Wait =
  | "accepted"
  | "applied"
  | "searchable";

/** AuditPage is one page of audit rows, oldest first. */
export interface AuditPage {
  rows: AuditRow[];
  cursor?: string;
  position: string;
}

/** AuditRow says what one event did. */
export interface AuditRow {
  position: string;
  /** sealed_at */
  at: string;
  type: string;
  event_id?: string;
  agent?: string;
  record_id?: string;
  scope?: Scope;
  outcome: string;
  /** SHA-256 of the sealed event, hex */
  hash: string;
  system?: boolean;
  namespace?: string;
}

/**
 * AuditedRead is a read that a namespace has audited: who was given which memories, and what for. It names
 * them, and holds no word of them or of the query.
 */
export interface AuditedRead {
  /** of its event */
  position: string;
  event_id: string;
  /** when the event was sealed, which is before the answer was given */
  at: string;
  namespace: string;
  /** that was reading, as it said */
  agent?: string;
  /** of what was given; a read of both scopes is two of these */
  scope: Scope;
  purpose: Purpose;
  consistency: Consistency;
  /** the position that the answer was read at */
  read_at: string;
  /**
   * `query_hash` is a hash of the query under a key of the namespace, in hex: equal queries have equal
   * hashes. Empty where a vector was all that was asked with.
   */
  query_hash?: string;
  /** in the order of the answer */
  given: Given[];
}

/**
 * AuditedReadPage is one page of audited reads, newest first. A page may have fewer than were asked for, or
 * none, and still a cursor: it looks into a few thousand reads at most.
 */
export interface AuditedReadPage {
  reads: AuditedRead[];
  cursor?: string;
  position: string;
}

/** Capture is what an agent wants remembered. */
export interface Capture {
  /** Your own id for it, with which it is safe to send again. */
  id?: string;
  /** Who says it. */
  agent?: string;
  /** The memory, at most 256 KiB. */
  text: string;
  /** What sort of memory it is; other unless said. */
  kind?: Kind;
  /** Of who spoke, such as user or assistant. */
  role?: string;
  /** A name of its own: mem://<namespace>/<path>, or the path alone. */
  uri?: string;
  /** Words to filter by; a filter wants all of its tags. */
  tags?: string[];
  /** What the memory is part of. */
  conversation?: string;
  /** Whose personal data it is: the unit of erasure. */
  subject?: string;
  /** team: everyone in the namespace sees it; agent: only its agent. */
  scope?: Scope;
  /** How much it matters. */
  importance?: number;
  /** When it happened; when it was captured unless said. */
  occurred_at?: string | Date;
  /** The records that it was made of. */
  derived_from?: string[];
  /** A JSON object of at most 16 KiB, given back as it is. */
  metadata?: unknown;
}

/**
 * CaptureResponse answers a capture: one result an item, in order. `position` is that of the last event of
 * the batch.
 */
export interface CaptureResponse {
  position: string;
  results: CaptureResult[];
  vectors?: string;
}

/** CaptureResult is the outcome of one item. */
export interface CaptureResult {
  /** the client's id, if it gave one */
  id?: string;
  record_id?: string;
  position?: string;
  status: ItemStatus;
  /** "pending" when wait=searchable ran out */
  vectors?: string;
  error?: ItemError;
}

/** CertificateStatus is a certificate that a node shows. */
export interface CertificateStatus {
  /** "clients" or "nodes" */
  for: string;
  expires_at: string;
  /** `clients_verified` says that a client must show a certificate, too. */
  clients_verified?: boolean;
}

/**
 * ClusterCopy is what the log server of one node holds of a shard's log. All zero: it has no copy, or is no
 * part of the node.
 */
export interface ClusterCopy {
  /** sequence of the last frame */
  last: number;
  /**
   * `current`: it has what was agreed on, as far as that server knows. A copy is whole if it is current and
   * its last frame is the log's.
   */
  current: boolean;
  /**
   * `checked_at` is when the node last read the files of its copies and found them sound; zero if it has not
   * since its start.
   */
  checked_at?: string;
  /** what does not check in them */
  damage?: string;
}

/** ClusterNode is one node of a cluster. */
export interface ClusterNode {
  id: string;
  /** the id and what the node drew for its data directory */
  name?: string;
  /** where the other nodes reach it */
  address: string;
  role: string;
  /** it answered in time */
  reachable: boolean;
  /**
   * `why` it does not answer, or takes no part though it does, in a few words that follow its name: "listens
   * and does not answer". Empty where all is well.
   */
  why?: string;
  /** it leads nothing, because it was asked not to */
  drained?: boolean;
}

/** ClusterReplica is what one node holds of a shard. */
export interface ClusterReplica {
  node: string;
  position: string;
  state_hash: string;
  /** `halted` is why it applies nothing; mostly "". */
  halted?: string;
  /** `behind` is how many frames of the log it lacks, against the one that has most. */
  behind: number;
  /** `log` is the node's own copy of the log. */
  log: ClusterCopy;
}

/** ClusterShard is one shard with its replicas. */
export interface ClusterShard {
  id: number;
  /** a node's id; "" = nobody leads, as far as is known */
  leader: string;
  term: number;
  /** none where the log is on an external NATS */
  copies?: LogCopies;
  /** of the nodes that answered */
  replicas: ClusterReplica[];
  /** `writes_stopped` is why the shard takes no writes now; none where it takes them. */
  writes_stopped?: WritesStopped;
}

/** ClusterStatus describes a cluster as one of its nodes sees it now. */
export interface ClusterStatus {
  cluster_id: string;
  nodes: ClusterNode[];
  shards: ClusterShard[];
}

/**
 * CopyStatus says how the files are in which a node among others keeps its own copy of the log, and what the
 * log's servers have agreed on.
 */
export interface CopyStatus {
  /** they are being read */
  running?: boolean;
  /** when they were last found sound */
  checked_at?: string;
  /** what does not check */
  damage?: string;
  /** since when that is known */
  found_at?: string;
  /** `waits` is what keeps the node from taking its copy from the others. */
  waits?: string;
}

/**
 * Correction is a word of a query and what it was read as: a term that memories of the reader have. What a
 * memory has of the term counts for the word, times `weight`, where that is more than what it has of the word
 * itself.
 */
export interface Correction {
  /** as it stands in the query */
  word: string;
  read_as: string;
  /**
   * `kind` is beginning, part, edit, glued, split, alias, related, or common for a word that is known and
   * rare; begins for a beginning that the query asks for with a star, and many, with nothing else, where more
   * terms begin so than are looked for. A phrase is one that was found in no memory; `docs` is how many have
   * its words otherwise, as far as they were read. With the weight 1 its words, which are `read_as`, were
   * looked for in its place; without a weight nothing was, and `read_as` is the query without its quotes.
   */
  kind: string;
  weight: number;
  /** edits */
  distance?: number;
  /** memories that have it, in the field where most do */
  docs: number;
}

/** CreateNamespace asks for a new namespace. */
export interface CreateNamespace {
  /** A name: a-z, 0-9, _ and -, not beginning with the last two. */
  name: string;
  /** Values by names; null is the default. */
  settings?: { [name: string]: string };
  /** Only say whether it would be done. */
  dry_run?: boolean;
}

/** Deleted answers the deletion of a namespace. */
export interface Deleted {
  name: string;
  position: string;
}

/** EmbedderInfo names an embedder and its vector space. */
export interface EmbedderInfo {
  provider: string;
  model: string;
  dimensions: number;
  space: string;
}

/** EmbedderStatus says what turns a namespace's text into vectors, and how far a change of it has come. */
export interface EmbedderStatus {
  namespace: string;
  /** "ready" or "building" */
  state: string;
  embedder: EmbedderInfo;
  records: number;
  /** records that have vectors */
  vectors: number;
  pending_vectors: number;
  building?: SpaceBuilding;
  /** spaces before, oldest first */
  kept: SpaceKept[];
  /** `last_switch` is what the last change of the embedder found before it. */
  last_switch?: SpaceComparison;
  position: string;
}

/**
 * ErasingStatus says how far the removal of deleted namespaces from the node's files has come. They have left
 * every answer before, and their keys are gone.
 */
export interface ErasingStatus {
  /** keys, readers, tables, state, caches, storage key, raft, files or end */
  step: string;
  since: string;
  /** of the last attempt; it is tried again */
  error?: string;
}

/**
 * Event is a CloudEvents 1.0 event in JSON form: the shape of feeds, server-sent events, tail and export.
 */
export interface Event {
  specversion: string;
  id: string;
  source: string;
  type: string;
  subject?: string;
  time?: string;
  datacontenttype?: string;
  data?: unknown;
  position?: string;
}

/**
 * Explain accounts for a hit's score, which is 1 / (1 + exp(-`sum`)). `newer_than` is the older memory about
 * the same thing that the part newer put the hit in front of, and `older_than` the newest that was put in
 * front of the hit.
 */
export interface Explain {
  /** Σ Weight × Value */
  sum: number;
  parts: ExplainPart[];
  terms?: ExplainTerm[];
  newer_than?: string;
  older_than?: string;
}

/** ExplainPart is one addend of the sum. */
export interface ExplainPart {
  source: string;
  weight: number;
  value: number;
  /** what the value is made of: BM25, cosine */
  raw: number;
}

/**
 * ExplainTerm is one query term's share of the BM25 score. Where the memory holds something that stands for
 * the term, `read_as` is that and `kind` says why: the kind of a Correction, or form for the same word in
 * another form.
 */
export interface ExplainTerm {
  term: string;
  read_as?: string;
  kind?: string;
  score: number;
}

/** ExportLine is one line of an export: a capture with the record's identity. It can be imported again. */
export interface ExportLine {
  record_id: string;
  version: number;
  position: string;
  created_at: string;
  origin?: Origin;
  /** CloudEvents source, if one was given */
  source?: string;
  /** the client's idempotency key */
  id?: string;
  agent?: string;
  text: string;
  kind?: Kind;
  role?: string;
  uri?: string;
  tags?: string[];
  conversation?: string;
  subject?: string;
  scope?: Scope;
  /** 0..1 */
  importance?: number;
  occurred_at?: string;
  derived_from?: string[];
  /** a JSON object */
  metadata?: unknown;
}

/**
 * Filter narrows a search. Empty fields do not filter. `since` and `until` are on occurred_at; `since` is
 * inclusive, `until` exclusive.
 */
export interface Filter {
  /** Any of these agents. */
  agents?: string[];
  /** Any of these kinds. */
  kinds?: Kind[];
  /** Words to filter by; a filter wants all of its tags. */
  tags?: string[];
  /** From this time on, by occurred_at. */
  since?: string | Date;
  /** Before this time, by occurred_at. */
  until?: string | Date;
  /** team: everyone in the namespace sees it; agent: only its agent. */
  scope?: Scope;
  /** What the memory is part of. */
  conversation?: string;
}

/** ForgetResponse answers a forget. */
export interface ForgetResponse {
  record_id: string;
  position: string;
}

/**
 * Given is a version of a record that was given to a reader. Both stay when the record is forgotten or
 * erased.
 */
export interface Given {
  record_id: string;
  version: number;
}

/**
 * Graph is a part of a knowledge graph, in the order of creation: entities and, with a query or names, the
 * relations of which either end is among them.
 */
export interface Graph {
  entities: GraphEntity[];
  relations: GraphRelation[];
  position: string;
}

/** GraphAdded says which observations of an entity are new. */
export interface GraphAdded {
  entityName: string;
  addedObservations: string[];
}

/** GraphChange is carried out as a whole or not at all, in order, as one event. */
export interface GraphChange {
  /** Your own id for it, with which it is safe to send again. */
  id?: string;
  /** Who says it. */
  agent?: string;
  /** Whose personal data it is: the unit of erasure. */
  subject?: string;
  /** Carried out in order; each is one of its fields. */
  operations: GraphOperation[];
}

/** GraphChanged answers a change: one result an operation, in order. */
export interface GraphChanged {
  /** of the event; where nothing was written, where the graph was read */
  position: string;
  status: string;
  results: GraphResult[];
}

/** GraphDeleted counts what a deletion took away. The observations of a deleted entity are not counted. */
export interface GraphDeleted {
  entities?: number;
  relations?: number;
  observations?: number;
}

/** GraphDeletion names observations to take from an entity. */
export interface GraphDeletion {
  /** The name of an entity. */
  entityName: string;
  /** What is known of it. */
  observations: string[];
}

/**
 * GraphEntity is a node of a namespace's knowledge graph. Its name is its identity. The JSON names are those
 * of the official MCP memory server.
 */
export interface GraphEntity {
  name: string;
  entityType: string;
  /** in the order in which they were added, each once; never null in answers */
  observations: string[];
}

/**
 * GraphLine is one line of a graph that is read as a stream, an entity or a relation. Entities have the first
 * three fields beside type, relations the others.
 */
export interface GraphLine {
  /** entity or relation */
  type: string;
  name?: string;
  entityType?: string;
  observations?: string[];
  from?: string;
  to?: string;
  relationType?: string;
}

/** GraphObservations are observations to add to an entity that must be there. */
export interface GraphObservations {
  /** The name of an entity. */
  entityName: string;
  /** What is to be known of it. */
  contents: string[];
}

/** GraphOperation is one step of a change: exactly one of its fields is set, an empty list counts as set. */
export interface GraphOperation {
  /** Those whose names are taken are passed over, and so is a name's second one here. */
  create_entities?: GraphEntity[];
  /** Their ends need not be there. */
  create_relations?: GraphRelation[];
  /** To entities that must be there. Those that an entity has are passed over. */
  add_observations?: GraphObservations[];
  /** By name, with the relations at either end. */
  delete_entities?: string[];
  /** By their exact texts. */
  delete_observations?: GraphDeletion[];
  /** By from, to and relationType. */
  delete_relations?: GraphRelation[];
}

/** GraphRelation is an edge. Its ends need not be there. All three together are its identity. */
export interface GraphRelation {
  from: string;
  to: string;
  relationType: string;
}

/** GraphResult is what one operation did; only the field of the operation is set. */
export interface GraphResult {
  /** that create_entities created */
  entities?: GraphEntity[];
  /** that create_relations created */
  relations?: GraphRelation[];
  /** by add_observations, one for each element of the request */
  added?: GraphAdded[];
  /** by a deletion */
  deleted?: GraphDeleted;
}

/** GuardStatus is the state of the recall guard: ok, tripped or none. */
export interface GuardStatus {
  state: string;
  recall: number;
}

/** History lists the versions of one record, oldest first. */
export interface History {
  record_id: string;
  versions: Record[];
  events: HistoryEvent[];
  /** older events that would have made it too long; their versions can be read one by one */
  omitted?: number;
  position: string;
}

/** HistoryEvent is one thing that happened to a record. */
export interface HistoryEvent {
  type: string;
  event_id: string;
  agent: string;
  at: string;
  version?: number;
  position: string;
}

/**
 * Hit is one result of a search. Scores lie in 0..1. `namespace` is set where several were searched. Where a
 * request names fields, only those are there.
 */
export interface Hit {
  namespace?: string;
  /** record id */
  id: string;
  /** the same, under the name that records give it */
  record_id: string;
  uri: string;
  text: string;
  /** text is cut to max_text, or, where an answer had no room for more, the snippet */
  truncated?: boolean;
  snippet: string;
  start_line: number;
  end_line: number;
  kind: Kind;
  agent: string;
  tags: string[];
  occurred_at: string;
  created_at: string;
  metadata?: unknown;
  conversation?: string;
  version: number;
  score: number;
  vector_score: number;
  text_score: number;
  matched_by: string[];
  position: string;
  scope: Scope;
  explain?: Explain;
}

/** ItemError says why one item of a batch failed. */
export interface ItemError {
  code: Code;
  detail: string;
  hint?: string;
}

/** LeftOff says what an answer would have had beyond its budget. */
export interface LeftOff {
  /** hits or records */
  count: number;
  /** how to get them */
  hint: string;
}

/** LogCopies says how many copies a shard's log has, one at a node. */
export interface LogCopies {
  /** `have` counts those that are whole, as far as the nodes that answered know. */
  have: number;
  /** `want` is how many the nodes that have a vote call for: with five nodes five, else three. */
  want: number;
}

/** LogStatus describes a shard's event log. */
export interface LogStatus {
  first: number;
  last: number;
  lost: number;
  /** `unreachable` is why the node could not ask the log; `first`, `last` and `lost` say nothing then. */
  unreachable?: string;
  /** why writes are stopped */
  diverged?: string;
  /**
   * `void` counts messages since the node's start that are no frames of the log's writer: they take a
   * sequence and change nothing.
   */
  void?: number;
  /** `scrub` is the slow reading of the whole log. */
  scrub?: ScrubStatus;
  /** `repair` says how far a repair is, in sequences, while there is one. */
  repair?: Progress;
}

/** Namespace describes one namespace. */
export interface Namespace {
  name: string;
  id: string;
  created_at: string;
  settings: { [name: string]: string };
  embedder: EmbedderInfo;
  space: string;
  records: number;
  pending_vectors: number;
  state_hash: string;
  position: string;
}

/** NamespaceList is one page of the namespaces by name. */
export interface NamespaceList {
  namespaces: Namespace[];
  /** of the next page */
  cursor?: string;
}

/** NodeStatus is one node of the cluster. */
export interface NodeStatus {
  id: string;
  /** `name` is the id and what the node drew for its data directory; empty for a node on its own. */
  name?: string;
  /** `learner` says that it has no vote: it does not count for majorities. */
  learner?: boolean;
  role: string;
  address: string;
  version: string;
}

/** PatchNamespace changes settings; a nil value resets one to its default. */
export interface PatchNamespace {
  /** Values by names; null is the default. */
  settings: { [name: string]: string | null };
  /** Only say whether it would be done. */
  dry_run?: boolean;
}

/** Problem is an RFC 9457 problem document with Mneme's code and hint. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: Code;
  hint?: string;
}

/**
 * Progress says how far a long administrative action has come. `total` is 0 while it is unknown. `unit` is
 * what is counted, such as "events" or "bytes".
 */
export interface Progress {
  done: number;
  total: number;
  unit?: string;
}

/**
 * Record is one version of one memory, opened for a reader that may see it. Where a request names fields,
 * only those are there.
 */
export interface Record {
  record_id: string;
  namespace: string;
  uri: string;
  version: number;
  text: string;
  /** text is cut to max_text */
  truncated?: boolean;
  kind: Kind;
  role?: string;
  agent: string;
  tags?: string[];
  conversation?: string;
  subject?: string;
  scope: Scope;
  origin: Origin;
  importance?: number;
  occurred_at: string;
  /** when this version was sealed */
  created_at: string;
  derived_from?: string[];
  metadata?: unknown;
  /** the client's id */
  id?: string;
  /** CloudEvents source, if one was given */
  source?: string;
  position: string;
  /** only in history */
  forgotten?: boolean;
}

/** RecordList is one page of records, newest first. */
export interface RecordList {
  records: Record[];
  /** "" = no more */
  cursor?: string;
  position: string;
  /** of this page, for which the budget had no room */
  left_off?: LeftOff;
}

/** Revision changes a record: a field that is nil stays as it is. */
export interface Revision {
  /** The memory, at most 256 KiB. */
  text?: string;
  /** What sort of memory it is; other unless said. */
  kind?: Kind;
  /** Of who spoke, such as user or assistant. */
  role?: string;
  /** A name of its own: mem://<namespace>/<path>, or the path alone. */
  uri?: string;
  /** Words to filter by; a filter wants all of its tags. */
  tags?: string[];
  /** What the memory is part of. */
  conversation?: string;
  /** How much it matters. */
  importance?: number;
  /** When it happened; when it was captured unless said. */
  occurred_at?: string | Date;
  /** The records that it was made of. */
  derived_from?: string[];
  /** A JSON object of at most 16 KiB, given back as it is. */
  metadata?: unknown;
}

/** RevisionResponse answers a revision. */
export interface RevisionResponse {
  record_id: string;
  version: number;
  position: string;
}

/**
 * ScrubStatus says how far the slow reading of the whole log is, in sequences, and how the last one ended.
 */
export interface ScrubStatus {
  running: boolean;
  done: number;
  total: number;
  /** when a pass last found the log sound */
  finished_at?: string;
  /** what the last pass found */
  problem?: string;
}

/**
 * SearchNamespaces asks for memories in several namespaces at once: their results are ranked together, under
 * one limit.
 */
export interface SearchNamespaces {
  /** Those to search; there is no "all". */
  namespaces: string[];
  /** What is looked for, in any words, at most 16 KiB. */
  query: string;
  /** How the query is read: plain takes all of it as what somebody said, with no operators in it. */
  syntax?: Syntax;
  /** The agent that is acting. Without one only the team's memories are seen. */
  as?: string;
  /** At most so many hits; 6 unless said. */
  limit?: number;
  /** By words, by vectors, or by both; both unless said. */
  mode?: Mode;
  /** Only hits with at least this score; the namespace's floor unless said. */
  min_score?: number;
  /** Also hits below the floor. */
  all?: boolean;
  /** What a hit must be. It changes no score. */
  filter?: Filter;
  /** Not supported yet. */
  as_of?: string;
  /** Wait until the node has reached this position. */
  at_least?: string;
  /** How fresh the answer must be; local unless said. */
  consistency?: Consistency;
  /** Account for each score. */
  explain?: boolean;
  /**
   * What the answer is for: inject says that it goes into a prompt as a block of memories. A namespace may
   * have such reads audited.
   */
  purpose?: Purpose;
  /** The query's vector, in the namespace's space, in place of the embedder's. */
  vector?: number[];
  /** Steps of the search to switch on or off. */
  parts?: { [name: string]: boolean };
  /** Characters of each text; what is cut says truncated. 1000 unless said. */
  max_text?: number;
  /** Only these fields of each hit; all unless said. */
  fields?: string[];
  /**
   * Tokens (cl100k_base) that the whole answer may have as JSON. What there is no room for is counted in
   * left_off.
   */
  budget?: number;
}

/** SearchRequest asks for memories. */
export interface SearchRequest {
  /** What is looked for, in any words, at most 16 KiB. */
  query: string;
  /** How the query is read: plain takes all of it as what somebody said, with no operators in it. */
  syntax?: Syntax;
  /** The agent that is acting. Without one only the team's memories are seen. */
  as?: string;
  /** At most so many hits; 6 unless said. */
  limit?: number;
  /** By words, by vectors, or by both; both unless said. */
  mode?: Mode;
  /** Only hits with at least this score; the namespace's floor unless said. */
  min_score?: number;
  /** Also hits below the floor. */
  all?: boolean;
  /** What a hit must be. It changes no score. */
  filter?: Filter;
  /** Not supported yet. */
  as_of?: string;
  /** Wait until the node has reached this position. */
  at_least?: string;
  /** How fresh the answer must be; local unless said. */
  consistency?: Consistency;
  /** Account for each score. */
  explain?: boolean;
  /**
   * What the answer is for: inject says that it goes into a prompt as a block of memories. A namespace may
   * have such reads audited.
   */
  purpose?: Purpose;
  /** The query's vector, in the namespace's space, in place of the embedder's. */
  vector?: number[];
  /** Steps of the search to switch on or off. */
  parts?: { [name: string]: boolean };
  /** Characters of each text; what is cut says truncated. 1000 unless said. */
  max_text?: number;
  /** Only these fields of each hit; all unless said. */
  fields?: string[];
  /**
   * Tokens (cl100k_base) that the whole answer may have as JSON. What there is no room for is counted in
   * left_off.
   */
  budget?: number;
}

/**
 * SearchResponse answers a search, best first, ties by id. It has the namespace, or the namespaces that were
 * searched at once; their position is one for each of their shards, with commas between them, and good for
 * at_least.
 */
export interface SearchResponse {
  results: Hit[];
  position: string;
  took_ms: number;
  mode: Mode;
  namespace?: string;
  namespaces?: string[];
  /** `corrections` are the words that were read as others too, in the query's order. */
  corrections?: Correction[];
  /** for which the budget had no room */
  left_off?: LeftOff;
  /**
   * `nothing_found` says that there is no result. Where something matched and lay below the floor,
   * `best_refused` is the best score of that.
   */
  nothing_found?: boolean;
  best_refused?: number;
}

/** ShardStatus describes one shard on the answering node. */
export interface ShardStatus {
  id: number;
  leader: string;
  epoch: number;
  position: string;
  state_hash: string;
  pipeline_version: number;
  log: LogStatus;
  records: number;
  pending_vectors: number;
  halted?: string;
  /** the event at which it has halted, if that is why */
  stopped_at?: string;
  /**
   * `writes_stopped` is why the shard takes no writes now, as the node that leads it says; none where it
   * takes them, and where that node was not asked.
   */
  writes_stopped?: WritesStopped;
  /**
   * `lacks` is how many frames of the log the state does not hold since a start without room on the disk.
   * Nothing is read until there is room to apply them.
   */
  lacks?: number;
  /** `erasing` is there while what was deleted for good leaves the files. */
  erasing?: ErasingStatus;
}

/** SpaceBuilding is a vector space that is built beside the current one. */
export interface SpaceBuilding {
  embedder: EmbedderInfo;
  /** "filling", "comparing", "waiting" */
  phase: string;
  /** records that have vectors in it */
  done: number;
  total: number;
  /** records with nothing in them that it can embed */
  skipped: number;
  records_per_second: number;
  /** seconds to go; 0 = not known */
  eta_s: number;
  error?: string;
  error_at?: string;
  retry_at?: string;
}

/** SpaceComparison is what was found before a namespace changed its space. */
export interface SpaceComparison {
  at: string;
  from: EmbedderInfo;
  to: EmbedderInfo;
  records: number;
  /** records with vectors in `from` */
  old_vectors: number;
  /** … and in `to` */
  new_vectors: number;
  /** records whose neighbours were looked for */
  sample: number;
  /**
   * `recall` is the share of the sample's ten nearest, by an exact scan of the new space, that a search of it
   * found.
   */
  recall: number;
  /**
   * `agreement` is the share of the sample's ten nearest that both spaces give. Models differ, so this is for
   * information.
   */
  agreement: number;
}

/** SpaceKept is a space that a namespace had before. */
export interface SpaceKept {
  embedder: EmbedderInfo;
  /** living ones that have vectors in it */
  records: number;
  until: string;
}

/** Status describes a node and its shards. */
export interface Status {
  cluster_id: string;
  nodes: NodeStatus[];
  shards: ShardStatus[];
  /** `copy` is the answering node's own copy of the log; none where it keeps none beside others. */
  copy?: CopyStatus;
  embedder: EmbedderInfo;
  vector: VectorStatus;
  auth: string;
  /**
   * `admin_socket` is the file through which the operator reaches the node without a token, on its machine
   * only.
   */
  admin_socket?: string;
  /** `certificates` are those that the node shows; none without TLS. */
  certificates?: CertificateStatus[];
  version: string;
  dev?: boolean;
  uptime_s: number;
}

/** SwitchEmbedder asks for another embedder of a namespace. */
export interface SwitchEmbedder {
  /** Who makes the vectors: builtin, ollama, openai, gemini or none. */
  provider: string;
  /** As the provider calls it. */
  model?: string;
  /** Of the vectors; the model's own unless said. */
  dimensions?: number;
}

/** Timeline is what surrounded a memory in time or in its conversation. */
export interface Timeline {
  anchor: Record;
  /** oldest first */
  before: Record[];
  /** oldest first */
  after: Record[];
  position: string;
  /** on both sides, for which the budget had no room */
  left_off?: LeftOff;
}

/** VectorStatus names the vector engine and what its guard found. */
export interface VectorStatus {
  engine: string;
  recall_guard: GuardStatus;
}

/** WritesStopped is why a shard takes no writes, and what helps. */
export interface WritesStopped {
  /** the id of the node that leads; "" = none does */
  node?: string;
  why: string;
  hint?: string;
}

/** What may be said beside the request of captureMemories. */
export interface CaptureMemoriesOptions {
  /** How far the write must have come; applied unless said. */
  wait?: Wait;
  /** How the memories came to be; capture unless said. */
  origin?: "capture" | "import" | "hook";
  /** The agent that is acting. */
  as?: string;
  /** Makes it safe to send again. Items of an array get <key>/0, <key>/1, … */
  key?: string;
}

/** What may be said beside the request of changeGraph. */
export interface ChangeGraphOptions {
  /** The agent that is acting. */
  as?: string;
  /** Makes it safe to send again. Items of an array get <key>/0, <key>/1, … */
  key?: string;
}

/** What may be said beside the request of exportGraph. */
export interface ExportGraphOptions {
  /**
   * Of the entities only those that were created after the one of this name; 404 if it is not there. What is
   * passed over is not read.
   */
  after?: string;
  /** The agent that is acting. */
  as?: string;
  /** Wait until the node has reached this position. */
  at_least?: string;
  /** How fresh the answer must be; local unless said. */
  consistency?: Consistency;
}

/** What may be said beside the request of exportMemories. */
export interface ExportMemoriesOptions {
  /** The agent that is acting. */
  as?: string;
  /** Wait until the node has reached this position. */
  at_least?: string;
  /** How fresh the answer must be; local unless said. */
  consistency?: Consistency;
}

/** What may be said beside the request of followEvents. */
export interface FollowEventsOptions {
  /** Begin after this position; without it, with what happens from now on. */
  from?: string;
  /** false ends the stream at the present. */
  follow?: boolean;
  /** The agent that is acting. */
  as?: string;
  /** Wait until the node has reached this position. */
  at_least?: string;
  /** How fresh the answer must be; local unless said. */
  consistency?: Consistency;
}

/** What may be said beside the request of forgetRecord. */
export interface ForgetRecordOptions {
  /** The agent that is acting. */
  as?: string;
  /** The version the record must stand at. */
  if_version?: string;
}

/** What may be said beside the request of getAudit. */
export interface GetAuditOptions {
  /** The cursor of the page before. */
  cursor?: string;
  /** At most this many. */
  limit?: number;
  /** Rows after this position. */
  from?: string;
  /** Rows of this agent. */
  actor?: string;
  /** Rows of this type of event, such as memory.forgotten. */
  type?: string;
  /** From this time on. */
  since?: string | Date;
  /** Before this time. */
  until?: string | Date;
  /** The agent that is acting. */
  as?: string;
  /** Wait until the node has reached this position. */
  at_least?: string;
  /** How fresh the answer must be; local unless said. */
  consistency?: Consistency;
}

/** What may be said beside the request of getRecord. */
export interface GetRecordOptions {
  /** This version instead of the current one. */
  version?: number;
  /** The agent that is acting. */
  as?: string;
  /** Wait until the node has reached this position. */
  at_least?: string;
  /** How fresh the answer must be; local unless said. */
  consistency?: Consistency;
}

/** What may be said beside the request of getRecordHistory. */
export interface GetRecordHistoryOptions {
  /** The agent that is acting. */
  as?: string;
  /** Wait until the node has reached this position. */
  at_least?: string;
  /** How fresh the answer must be; local unless said. */
  consistency?: Consistency;
}

/** What may be said beside the request of getStatus. */
export interface GetStatusOptions {
  /** Name this node only, not the others of its cluster. */
  local?: boolean;
}

/** What may be said beside the request of getTimeline. */
export interface GetTimelineOptions {
  /** How many records before it; 3 unless said. */
  before?: number;
  /** How many records after it; 3 unless said. */
  after?: number;
  /** Characters of each text; what is cut says truncated. 1000 unless said. */
  max_text?: number;
  /** Only these fields of each record, separated by commas; all unless said. */
  fields?: string;
  /**
   * Tokens (cl100k_base) that the whole answer may have; what there is no room for is counted in left_off.
   */
  budget?: number;
  /** The agent that is acting. */
  as?: string;
  /** Wait until the node has reached this position. */
  at_least?: string;
  /** How fresh the answer must be; local unless said. */
  consistency?: Consistency;
}

/** What may be said beside the request of listAuditedReads. */
export interface ListAuditedReadsOptions {
  /** The cursor of the page before. */
  cursor?: string;
  /** At most this many. */
  limit?: number;
  /** Reads by this agent. */
  agent?: string;
  /** Reads that gave this record. */
  record?: string;
  /** From this time on. */
  since?: string | Date;
  /** Before this time. */
  until?: string | Date;
  /** The agent that is acting. */
  as?: string;
  /** Wait until the node has reached this position. */
  at_least?: string;
  /** How fresh the answer must be; local unless said. */
  consistency?: Consistency;
}

/** What may be said beside the request of listNamespaces. */
export interface ListNamespacesOptions {
  /** The cursor of the page before. */
  cursor?: string;
  /** At most this many. */
  limit?: number;
}

/** What may be said beside the request of listRecords. */
export interface ListRecordsOptions {
  /** The cursor of the page before. */
  cursor?: string;
  /** At most this many. */
  limit?: number;
  /** Only the living record with this uri, or 404. */
  uri?: string;
  /** Any of these kinds. */
  kind?: Kind[];
  /** All of these tags. */
  tag?: string[];
  /** Any of these agents. */
  agent?: string[];
  /** Only this scope. */
  scope?: Scope;
  /** Only this conversation. */
  conversation?: string;
  /** What the answer is for: inject, as of a search. Not with uri. */
  purpose?: Purpose;
  /** From this time on. */
  since?: string | Date;
  /** Before this time. */
  until?: string | Date;
  /** Characters of each text; what is cut says truncated. 1000 unless said. */
  max_text?: number;
  /** Only these fields of each record, separated by commas; all unless said. */
  fields?: string;
  /**
   * Tokens (cl100k_base) that the whole answer may have; what there is no room for is counted in left_off.
   */
  budget?: number;
  /** The agent that is acting. */
  as?: string;
  /** Wait until the node has reached this position. */
  at_least?: string;
  /** How fresh the answer must be; local unless said. */
  consistency?: Consistency;
}

/** What may be said beside the request of readGraph. */
export interface ReadGraphOptions {
  /**
   * Only entities that hold this in name, type or an observation, in any case and as a whole, with the
   * relations of which either end is one of them.
   */
  query?: string;
  /**
   * Only the entities of these names, with the relations of which either end is one of them. Unknown names
   * are passed over.
   */
  name?: string[];
  /** The agent that is acting. */
  as?: string;
  /** Wait until the node has reached this position. */
  at_least?: string;
  /** How fresh the answer must be; local unless said. */
  consistency?: Consistency;
}

/** What may be said beside the request of reviseRecord. */
export interface ReviseRecordOptions {
  /** The agent that is acting. */
  as?: string;
  /** The version the record must stand at. */
  if_version?: string;
  /** Makes it safe to send again. Items of an array get <key>/0, <key>/1, … */
  key?: string;
}

/** What may be said beside the request of searchMemories. */
export interface SearchMemoriesOptions {
  /** The agent that is acting. */
  as?: string;
}

/** What may be said beside the request of searchNamespaces. */
export interface SearchNamespacesOptions {
  /** The agent that is acting. */
  as?: string;
}
