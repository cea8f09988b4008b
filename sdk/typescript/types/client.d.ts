/**
 * Talks to a node, or to the nodes of a cluster.
 *
 * Parameters and fields have the names that they have on the wire. Errors are `MnemeError`. A capture whose
 * answer was lost is sent again under the same id, and counts once.
 */
export class Client {
    /**
     * @param {string | readonly string[]} [addresses] "host:port" or a URL, or several, with commas between or in a
     *   list: the client talks to one for as long as that takes its calls, and goes on with the next when it does not
     * @param {ClientOptions} [options]
     */
    constructor(addresses?: string | readonly string[], options?: ClientOptions);
    /** The address that the client talks to; of several, the present one. */
    get address(): string;
    /**
     * Remembers one thing, and resolves once it can be found. Its `id` is your own id for it: the same id counts
     * once, and the second time answers "duplicate". Without one, `key` is it, or one that the client makes up, so
     * that a lost answer does no harm.
     *
     * @param {string} namespace
     * @param {string | types.Capture} memory
     * @param {types.CaptureMemoriesOptions & CallOptions} [options]
     * @returns {Promise<types.CaptureResult>}
     */
    capture(namespace: string, memory: string | types.Capture, options?: types.CaptureMemoriesOptions & CallOptions): Promise<types.CaptureResult>;
    /**
     * Remembers up to 1000 things with one request. It does not reject for items that fail: look at the `status`
     * and `error` of each result, which are in the order of the items. Those without an id get `key`/0, `key`/1 and
     * so on.
     *
     * @param {string} namespace
     * @param {readonly types.Capture[]} items
     * @param {types.CaptureMemoriesOptions & CallOptions} [options]
     * @returns {Promise<types.CaptureResponse>}
     */
    captureBatch(namespace: string, items: readonly types.Capture[], options?: types.CaptureMemoriesOptions & CallOptions): Promise<types.CaptureResponse>;
    /**
     * Finds memories by words and by meaning, best first. `at_least` is the position of a write that the answer must
     * include. `max_text`, `fields` and `budget` (tokens) make the answer fit the window of an agent.
     *
     * @param {string} namespace
     * @param {string | types.SearchRequest} request
     * @param {CallOptions} [options]
     * @returns {Promise<types.SearchResponse>}
     */
    search(namespace: string, request: string | types.SearchRequest, options?: CallOptions): Promise<types.SearchResponse>;
    /**
     * Finds memories in several namespaces at once, ranked together; each hit says its namespace. The position of the
     * answer is one for each shard concerned, and good for `at_least`.
     *
     * @param {types.SearchNamespaces} request
     * @param {CallOptions} [options]
     * @returns {Promise<types.SearchResponse>}
     */
    searchNamespaces(request: types.SearchNamespaces, options?: CallOptions): Promise<types.SearchResponse>;
    /**
     * The whole of one record, by its id, the first 6 or more characters of it, or its uri's path.
     *
     * @param {string} namespace
     * @param {string} id
     * @param {types.GetRecordOptions & CallOptions} [options]
     * @returns {Promise<types.Record>}
     */
    get(namespace: string, id: string, options?: types.GetRecordOptions & CallOptions): Promise<types.Record>;
    /**
     * One page of records, newest first; go on with its `cursor` until there is none.
     *
     * @param {string} namespace
     * @param {types.ListRecordsOptions & CallOptions} [options]
     * @returns {Promise<types.RecordList>}
     */
    list(namespace: string, options?: types.ListRecordsOptions & CallOptions): Promise<types.RecordList>;
    /**
     * Makes a new version of a record; what is not given stays as it is. With `if_version` it is a conflict unless
     * the record stands at that version. It is sent under `key`, or one that the client makes up, so that it is made
     * once though an answer is lost.
     *
     * @param {string} namespace
     * @param {string} id
     * @param {types.Revision} revision
     * @param {types.ReviseRecordOptions & CallOptions} [options]
     * @returns {Promise<types.RevisionResponse>}
     */
    revise(namespace: string, id: string, revision: types.Revision, { key, ...options }?: types.ReviseRecordOptions & CallOptions): Promise<types.RevisionResponse>;
    /**
     * Removes a record from every present answer; its history stays. It is never sent again by the client: a lost
     * answer is `outcome_unknown`.
     *
     * @param {string} namespace
     * @param {string} id
     * @param {types.ForgetRecordOptions & CallOptions} [options]
     * @returns {Promise<types.ForgetResponse>}
     */
    forget(namespace: string, id: string, options?: types.ForgetRecordOptions & CallOptions): Promise<types.ForgetResponse>;
    /**
     * Every version of a record, oldest first, also of a forgotten one.
     *
     * @param {string} namespace
     * @param {string} id
     * @param {types.GetRecordHistoryOptions & CallOptions} [options]
     * @returns {Promise<types.History>}
     */
    history(namespace: string, id: string, options?: types.GetRecordHistoryOptions & CallOptions): Promise<types.History>;
    /**
     * What surrounded a record: in its conversation if it has one, else among all that the agent may see.
     *
     * @param {string} namespace
     * @param {string} id
     * @param {types.GetTimelineOptions & CallOptions} [options]
     * @returns {Promise<types.Timeline>}
     */
    timeline(namespace: string, id: string, options?: types.GetTimelineOptions & CallOptions): Promise<types.Timeline>;
    /**
     * One page of who did what, oldest first; go on with its `cursor` until there is none.
     *
     * @param {string} namespace
     * @param {types.GetAuditOptions & CallOptions} [options]
     * @returns {Promise<types.AuditPage>}
     */
    audit(namespace: string, options?: types.GetAuditOptions & CallOptions): Promise<types.AuditPage>;
    /**
     * One page of who was given which memories for a prompt, newest first; go on with its `cursor` until there is none.
     * A namespace has such reads audited where its setting `audit.injections` is `on`.
     *
     * @param {string} namespace
     * @param {types.ListAuditedReadsOptions & CallOptions} [options]
     * @returns {Promise<types.AuditedReadPage>}
     */
    auditedReads(namespace: string, options?: types.ListAuditedReadsOptions & CallOptions): Promise<types.AuditedReadPage>;
    /**
     * Every living record that the agent may see, oldest first, whole; ends with an error if it is not complete.
     *
     * @param {string} namespace
     * @param {types.ExportMemoriesOptions & CallOptions} [options]
     * @returns {AsyncGenerator<types.ExportLine, void, undefined>}
     */
    export(namespace: string, options?: types.ExportMemoriesOptions & CallOptions): AsyncGenerator<types.ExportLine, void, undefined>;
    /**
     * Everything that is applied and that the agent may see, in order, each event once. It begins after the position
     * `from`, or with what happens from now on; "p0.0.0.0" is the beginning. `follow: false` ends it at the present. A
     * broken connection is opened again after the last event, at the next node if there are several, and what no memnode
     * answers then is waited out.
     *
     * @param {string} namespace
     * @param {types.FollowEventsOptions & CallOptions} [options]
     * @returns {AsyncGenerator<types.Event, void, undefined>}
     */
    events(namespace: string, { signal, ...options }?: types.FollowEventsOptions & CallOptions): AsyncGenerator<types.Event, void, undefined>;
    /**
     * Changes the knowledge graph of a namespace, as a whole or not at all; one result an operation, in order. It is
     * `not_found`, and nothing is changed, where observations are added to an entity that is not there. Its `id` is
     * your own id for it: the same id counts once, and the second time answers "duplicate" with the results of the
     * first. Without one, `key` is it, or one that the client makes up, so that a lost answer does no harm. `subject`
     * is whose personal data it adds; with one it may only add.
     *
     * @param {string} namespace
     * @param {types.GraphChange | readonly types.GraphOperation[]} change
     * @param {types.ChangeGraphOptions & CallOptions} [options]
     * @returns {Promise<types.GraphChanged>}
     */
    changeGraph(namespace: string, change: types.GraphChange | readonly types.GraphOperation[], { key, ...options }?: types.ChangeGraphOptions & CallOptions): Promise<types.GraphChanged>;
    /**
     * The knowledge graph of a namespace, or a part of it, in the order of creation. `query` finds the entities that
     * hold it, as a whole and in any case, in name, type or an observation; `name` opens the entities of these names,
     * and passes over unknown ones. Either comes with the relations of which one end is among them. A graph that is
     * too large for one answer is `too_large`; `exportGraph` reads any.
     *
     * @param {string} namespace
     * @param {types.ReadGraphOptions & CallOptions} [options]
     * @returns {Promise<types.Graph>}
     */
    readGraph(namespace: string, options?: types.ReadGraphOptions & CallOptions): Promise<types.Graph>;
    /**
     * The whole knowledge graph, however large: the entities, then the relations, in the order of creation; with
     * `after` it begins behind the entity of that name. It ends with an error if it is not complete.
     *
     * @param {string} namespace
     * @param {types.ExportGraphOptions & CallOptions} [options]
     * @returns {AsyncGenerator<types.GraphLine, void, undefined>}
     */
    exportGraph(namespace: string, options?: types.ExportGraphOptions & CallOptions): AsyncGenerator<types.GraphLine, void, undefined>;
    /**
     * All namespaces that the caller may see, by name; the pages of the node are put together.
     *
     * @param {CallOptions} [options]
     * @returns {Promise<types.Namespace[]>}
     */
    namespaces(options?: CallOptions): Promise<types.Namespace[]>;
    /**
     * One page of the namespaces, by name.
     *
     * @param {types.ListNamespacesOptions & CallOptions} [options]
     * @returns {Promise<types.NamespaceList>}
     */
    namespacesPage(options?: types.ListNamespacesOptions & CallOptions): Promise<types.NamespaceList>;
    /**
     * One namespace: its settings, its embedder, how many records it has.
     *
     * @param {string} name
     * @param {CallOptions} [options]
     * @returns {Promise<types.Namespace>}
     */
    namespace(name: string, options?: CallOptions): Promise<types.Namespace>;
    /**
     * Makes a namespace, a team's memory; a conflict if the name is taken.
     *
     * @param {string | types.CreateNamespace} request
     * @param {CallOptions} [options]
     * @returns {Promise<types.Namespace>}
     */
    createNamespace(request: string | types.CreateNamespace, options?: CallOptions): Promise<types.Namespace>;
    /**
     * Changes settings; null resets one to its default.
     *
     * @param {string} name
     * @param {types.PatchNamespace} request
     * @param {CallOptions} [options]
     * @returns {Promise<types.Namespace>}
     */
    changeNamespace(name: string, request: types.PatchNamespace, options?: CallOptions): Promise<types.Namespace>;
    /**
     * Deletes a namespace with everything in it, for good.
     *
     * @param {string} name
     * @param {CallOptions} [options]
     * @returns {Promise<types.Deleted>}
     */
    deleteNamespace(name: string, options?: CallOptions): Promise<types.Deleted>;
    /**
     * What turns the namespace's text into vectors, and how a change of it goes.
     *
     * @param {string} namespace
     * @param {CallOptions} [options]
     * @returns {Promise<types.EmbedderStatus>}
     */
    embedder(namespace: string, options?: CallOptions): Promise<types.EmbedderStatus>;
    /**
     * Changes the embedder: vectors are built beside the present ones, then searches use them.
     *
     * @param {string} namespace
     * @param {types.SwitchEmbedder} request
     * @param {CallOptions} [options]
     * @returns {Promise<types.EmbedderStatus>}
     */
    switchEmbedder(namespace: string, request: types.SwitchEmbedder, options?: CallOptions): Promise<types.EmbedderStatus>;
    /**
     * Gives up a change of the embedder that is under way.
     *
     * @param {string} namespace
     * @param {CallOptions} [options]
     * @returns {Promise<types.EmbedderStatus>}
     */
    cancelEmbedderSwitch(namespace: string, options?: CallOptions): Promise<types.EmbedderStatus>;
    /**
     * The node, its shards and its embedder; `local` names this node only, not the others of its cluster.
     *
     * @param {types.GetStatusOptions & CallOptions} [options]
     * @returns {Promise<types.Status>}
     */
    status(options?: types.GetStatusOptions & CallOptions): Promise<types.Status>;
    /**
     * The nodes of the cluster, and the replicas of each shard.
     *
     * @param {CallOptions} [options]
     * @returns {Promise<types.ClusterStatus>}
     */
    cluster(options?: CallOptions): Promise<types.ClusterStatus>;
    #private;
}
import type * as types from "../types/wire.js";
import type { CallOptions } from "./transport.js";
import type { ClientOptions } from "./transport.js";
