// The client.

import { defaultAddress } from "./addresses.js";
import { MnemeError, problem, transient } from "./errors.js";
import { Parser } from "./sse.js";
import { Transport, chunks, lost } from "./transport.js";

/** @import * as types from "../types/wire.js" */
/** @import { CallOptions, ClientOptions, Call } from "./transport.js" */

/** The pause before the first new attempt of a feed, in milliseconds; it doubles up to 32 times that. */
const pause = 250;

/** How many attempts of a feed in a row may bring nothing. */
const attempts = 10;

/**
 * Talks to a node, or to the nodes of a cluster.
 *
 * Parameters and fields have the names that they have on the wire. Errors are `MnemeError`. A capture whose
 * answer was lost is sent again under the same id, and counts once.
 */
export class Client {
  #transport;

  /**
   * @param {string | readonly string[]} [addresses] "host:port" or a URL, or several, with commas between or in a
   *   list: the client talks to one for as long as that takes its calls, and goes on with the next when it does not
   * @param {ClientOptions} [options]
   */
  constructor(addresses = defaultAddress, options = {}) {
    this.#transport = new Transport(addresses, options);
  }

  /** The address that the client talks to; of several, the present one. */
  get address() {
    return this.#transport.nodes.now;
  }

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
  async capture(namespace, memory, options = {}) {
    const item = typeof memory === "string" || memory === undefined ? { text: memory ?? "" } : memory;
    const answer = await this.#capture(namespace, item, { ...options, key: item.id || options.key });
    const [result] = answer.results;
    if (result === undefined || answer.results.length > 1) {
      throw new MnemeError("internal", `${this.address} answered ${answer.results.length} results for one capture`);
    }
    return result;
  }

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
  async captureBatch(namespace, items, options = {}) {
    if (items.length === 0) throw new MnemeError("invalid", "a batch needs at least one capture");
    const answer = await this.#capture(namespace, items, options);
    if (answer.results.length !== items.length) {
      throw new MnemeError("internal", `${this.address} answered ${answer.results.length} results for ${items.length} captures`);
    }
    return answer;
  }

  /**
   * @param {string} namespace
   * @param {unknown} body
   * @param {types.CaptureMemoriesOptions & CallOptions} options
   * @returns {Promise<types.CaptureResponse>}
   */
  #capture(namespace, body, { key, ...options }) {
    return this.#ask("captureMemories", { ns: namespace }, options, { body, key: key || newId() });
  }

  /**
   * Finds memories by words and by meaning, best first. `at_least` is the position of a write that the answer must
   * include. `max_text`, `fields` and `budget` (tokens) make the answer fit the window of an agent.
   *
   * @param {string} namespace
   * @param {string | types.SearchRequest} request
   * @param {CallOptions} [options]
   * @returns {Promise<types.SearchResponse>}
   */
  search(namespace, request, options = {}) {
    const body = typeof request === "string" ? { query: request } : request;
    return this.#ask("searchMemories", { ns: namespace }, { as: body.as, ...options }, { body });
  }

  /**
   * Finds memories in several namespaces at once, ranked together; each hit says its namespace. The position of the
   * answer is one for each shard concerned, and good for `at_least`.
   *
   * @param {types.SearchNamespaces} request
   * @param {CallOptions} [options]
   * @returns {Promise<types.SearchResponse>}
   */
  searchNamespaces(request, options = {}) {
    return this.#ask("searchNamespaces", {}, { as: request.as, ...options }, { body: request });
  }

  /**
   * The whole of one record, by its id, the first 6 or more characters of it, or its uri's path.
   *
   * @param {string} namespace
   * @param {string} id
   * @param {types.GetRecordOptions & CallOptions} [options]
   * @returns {Promise<types.Record>}
   */
  get(namespace, id, options = {}) {
    return this.#ask("getRecord", { ns: namespace, id }, options);
  }

  /**
   * One page of records, newest first; go on with its `cursor` until there is none.
   *
   * @param {string} namespace
   * @param {types.ListRecordsOptions & CallOptions} [options]
   * @returns {Promise<types.RecordList>}
   */
  list(namespace, options = {}) {
    return this.#ask("listRecords", { ns: namespace }, options);
  }

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
  revise(namespace, id, revision, { key, ...options } = {}) {
    return this.#ask("reviseRecord", { ns: namespace, id }, options, { body: revision, key: key || newId(), sure: true });
  }

  /**
   * Removes a record from every present answer; its history stays. It is never sent again by the client: a lost
   * answer is `outcome_unknown`.
   *
   * @param {string} namespace
   * @param {string} id
   * @param {types.ForgetRecordOptions & CallOptions} [options]
   * @returns {Promise<types.ForgetResponse>}
   */
  forget(namespace, id, options = {}) {
    return this.#ask("forgetRecord", { ns: namespace, id }, options, { sure: true });
  }

  /**
   * Every version of a record, oldest first, also of a forgotten one.
   *
   * @param {string} namespace
   * @param {string} id
   * @param {types.GetRecordHistoryOptions & CallOptions} [options]
   * @returns {Promise<types.History>}
   */
  history(namespace, id, options = {}) {
    return this.#ask("getRecordHistory", { ns: namespace, id }, options);
  }

  /**
   * What surrounded a record: in its conversation if it has one, else among all that the agent may see.
   *
   * @param {string} namespace
   * @param {string} id
   * @param {types.GetTimelineOptions & CallOptions} [options]
   * @returns {Promise<types.Timeline>}
   */
  timeline(namespace, id, options = {}) {
    return this.#ask("getTimeline", { ns: namespace, id }, options);
  }

  /**
   * One page of who did what, oldest first; go on with its `cursor` until there is none.
   *
   * @param {string} namespace
   * @param {types.GetAuditOptions & CallOptions} [options]
   * @returns {Promise<types.AuditPage>}
   */
  audit(namespace, options = {}) {
    return this.#ask("getAudit", { ns: namespace }, options);
  }

  /**
   * One page of who was given which memories for a prompt, newest first; go on with its `cursor` until there is none.
   * A namespace has such reads audited where its setting `audit.injections` is `on`.
   *
   * @param {string} namespace
   * @param {types.ListAuditedReadsOptions & CallOptions} [options]
   * @returns {Promise<types.AuditedReadPage>}
   */
  auditedReads(namespace, options = {}) {
    return this.#ask("listAuditedReads", { ns: namespace }, options);
  }

  /**
   * Every living record that the agent may see, oldest first, whole; ends with an error if it is not complete.
   *
   * @param {string} namespace
   * @param {types.ExportMemoriesOptions & CallOptions} [options]
   * @returns {AsyncGenerator<types.ExportLine, void, undefined>}
   */
  export(namespace, options = {}) {
    return this.#lines("exportMemories", namespace, options);
  }

  /**
   * What a node answers as one JSON document a line.
   *
   * @param {Call["operation"]} operation
   * @param {string} namespace
   * @param {Record<string, any> & CallOptions} options
   * @returns {AsyncGenerator<any, void, undefined>}
   */
  async *#lines(operation, namespace, { signal, ...options }) {
    /** @type {Call} */
    const call = { operation, path: { ns: namespace }, options, accept: "application/x-ndjson", signal };
    const answer = await this.#transport.open(call);
    const address = this.address;
    let rest = "";
    try {
      for await (const chunk of chunks(answer)) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          const document = JSON.parse(line);
          if (document.error !== undefined) throw problem(document.error, 0) ?? new MnemeError("internal", "the export broke off");
          yield document;
        }
      }
      if (rest !== "") throw new Error("the answer broke off within a line");
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw error instanceof MnemeError ? error : lost(call, address, error);
    }
  }

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
  async *events(namespace, { signal, ...options } = {}) {
    /** @type {string | undefined} */
    let lastEvent; // the position that the stream stands at
    let connected = false;
    let failures = 0;
    for (;;) {
      /** @type {Call} */
      const call = { operation: "followEvents", path: { ns: namespace }, options, accept: "text/event-stream", lastEvent, signal };
      try {
        const answer = await this.#transport.open(call);
        const { turn, now: address } = this.#transport.nodes;
        connected = true;
        const parser = new Parser();
        try {
          for await (const chunk of chunks(answer)) {
            for (const message of parser.feed(chunk)) {
              const seen = lastEvent !== undefined && message.id === lastEvent;
              const event = seen ? undefined : eventOf(message);
              if (message.id !== "") lastEvent = message.id;
              if (event === undefined) continue;
              failures = 0;
              yield event;
            }
          }
          if (options.follow === false) return;
          throw new Error("the node ended the stream");
        } catch (error) {
          if (error instanceof MnemeError || signal?.aborted) throw error;
          this.#transport.nodes.leave(turn);
          throw lost(call, address, error);
        }
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        failures++;
        if (!connected || failures >= attempts || !passes(error)) throw error;
        await sleep(Math.max(pause * 2 ** Math.min(failures - 1, 5), error.retryAfter * 1000), signal);
      }
    }
  }

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
  changeGraph(namespace, change, { key, ...options } = {}) {
    /** @type {types.GraphChange} */
    const body = "operations" in change ? change : { operations: [...change] };
    return this.#ask("changeGraph", { ns: namespace }, options, { body, key: body.id || key || newId() });
  }

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
  readGraph(namespace, options = {}) {
    const none = options.name !== undefined && options.name.length === 0; // which is not the whole graph
    return this.#ask("readGraph", { ns: namespace }, none ? { ...options, name: [""] } : options);
  }

  /**
   * The whole knowledge graph, however large: the entities, then the relations, in the order of creation; with
   * `after` it begins behind the entity of that name. It ends with an error if it is not complete.
   *
   * @param {string} namespace
   * @param {types.ExportGraphOptions & CallOptions} [options]
   * @returns {AsyncGenerator<types.GraphLine, void, undefined>}
   */
  exportGraph(namespace, options = {}) {
    return this.#lines("exportGraph", namespace, options);
  }

  /**
   * All namespaces that the caller may see, by name; the pages of the node are put together.
   *
   * @param {CallOptions} [options]
   * @returns {Promise<types.Namespace[]>}
   */
  async namespaces(options = {}) {
    /** @type {types.Namespace[]} */
    const found = [];
    let cursor = "";
    for (;;) {
      const page = await this.namespacesPage({ ...options, limit: 200, cursor: cursor || undefined });
      found.push(...page.namespaces);
      if (page.cursor === undefined || page.cursor <= cursor) return found; // they are names, which ascend
      cursor = page.cursor;
    }
  }

  /**
   * One page of the namespaces, by name.
   *
   * @param {types.ListNamespacesOptions & CallOptions} [options]
   * @returns {Promise<types.NamespaceList>}
   */
  namespacesPage(options = {}) {
    return this.#ask("listNamespaces", {}, options);
  }

  /**
   * One namespace: its settings, its embedder, how many records it has.
   *
   * @param {string} name
   * @param {CallOptions} [options]
   * @returns {Promise<types.Namespace>}
   */
  namespace(name, options = {}) {
    return this.#ask("getNamespace", { ns: name }, options);
  }

  /**
   * Makes a namespace, a team's memory; a conflict if the name is taken.
   *
   * @param {string | types.CreateNamespace} request
   * @param {CallOptions} [options]
   * @returns {Promise<types.Namespace>}
   */
  createNamespace(request, options = {}) {
    const body = typeof request === "string" ? { name: request } : request;
    return this.#ask("createNamespace", {}, options, { body });
  }

  /**
   * Changes settings; null resets one to its default.
   *
   * @param {string} name
   * @param {types.PatchNamespace} request
   * @param {CallOptions} [options]
   * @returns {Promise<types.Namespace>}
   */
  changeNamespace(name, request, options = {}) {
    return this.#ask("changeNamespace", { ns: name }, options, { body: request });
  }

  /**
   * Deletes a namespace with everything in it, for good.
   *
   * @param {string} name
   * @param {CallOptions} [options]
   * @returns {Promise<types.Deleted>}
   */
  deleteNamespace(name, options = {}) {
    return this.#ask("deleteNamespace", { ns: name }, options);
  }

  /**
   * What turns the namespace's text into vectors, and how a change of it goes.
   *
   * @param {string} namespace
   * @param {CallOptions} [options]
   * @returns {Promise<types.EmbedderStatus>}
   */
  embedder(namespace, options = {}) {
    return this.#ask("getEmbedder", { ns: namespace }, options);
  }

  /**
   * Changes the embedder: vectors are built beside the present ones, then searches use them.
   *
   * @param {string} namespace
   * @param {types.SwitchEmbedder} request
   * @param {CallOptions} [options]
   * @returns {Promise<types.EmbedderStatus>}
   */
  switchEmbedder(namespace, request, options = {}) {
    return this.#ask("switchEmbedder", { ns: namespace }, options, { body: request });
  }

  /**
   * Gives up a change of the embedder that is under way.
   *
   * @param {string} namespace
   * @param {CallOptions} [options]
   * @returns {Promise<types.EmbedderStatus>}
   */
  cancelEmbedderSwitch(namespace, options = {}) {
    return this.#ask("cancelEmbedderSwitch", { ns: namespace }, options);
  }

  /**
   * The node, its shards and its embedder; `local` names this node only, not the others of its cluster.
   *
   * @param {types.GetStatusOptions & CallOptions} [options]
   * @returns {Promise<types.Status>}
   */
  status(options = {}) {
    return this.#ask("getStatus", {}, options);
  }

  /**
   * The nodes of the cluster, and the replicas of each shard.
   *
   * @param {CallOptions} [options]
   * @returns {Promise<types.ClusterStatus>}
   */
  cluster(options = {}) {
    return this.#ask("getCluster", {}, options);
  }

  /**
   * @param {Call["operation"]} operation
   * @param {Record<string, string>} path
   * @param {Record<string, any> & CallOptions} options
   * @param {Pick<Call, "body" | "key" | "sure">} [more]
   */
  async #ask(operation, path, { signal, ...options }, more = {}) {
    return await this.#transport.json({ operation, path, options, signal, ...more });
  }
}

/**
 * Whether a feed that was there may be there again. What no memnode answers says nothing of it, unless it asks for a
 * credential.
 *
 * @param {unknown} error
 * @returns {error is MnemeError}
 */
function passes(error) {
  return transient(error) || (error instanceof MnemeError && error.foreign && error.code !== "unauthenticated");
}

/**
 * The event of a message; undefined if it brings none.
 *
 * @param {import("./sse.js").Message} message
 * @returns {types.Event | undefined}
 */
function eventOf(message) {
  if (message.data === "") return undefined;
  let document;
  try {
    document = JSON.parse(message.data);
  } catch (cause) {
    throw new MnemeError("internal", `event ${message.id}: not JSON`, { cause });
  }
  const failure = message.name === "error" ? problem(document, 0) : undefined;
  if (failure !== undefined) throw failure;
  return document;
}

/** A new idempotency key. */
function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {number} ms
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<void>}
 */
function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", leave);
      resolve();
    }, ms);
    signal?.addEventListener("abort", leave, { once: true });
  });
}
