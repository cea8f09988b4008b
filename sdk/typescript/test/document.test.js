// The client against the node's own description of itself.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { Client, MnemeError } from "mneme";
import { problem } from "../src/errors.js";
import { operations } from "../src/operations.js";
import { Parser } from "../src/sse.js";
import { startNode, take } from "./harness.js";

let node;
let document;
before(async () => {
  node = await startNode();
  document = await (await fetch(`${node.url}/openapi.json`)).json();
});
after(() => node.stop());

/** The operations of the document that are for agents. */
function described() {
  const out = {};
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (path.startsWith("/v1/") && !path.startsWith("/v1/admin/")) out[operation.operationId] = { method: method.toUpperCase(), path, ...operation };
    }
  }
  return out;
}

/** How each operation is called, with what is given to it. */
const calls = {
  cancelEmbedderSwitch: (c) => c.cancelEmbedderSwitch("ns"),
  captureMemories: (c, options, body) => c.captureBatch("ns", [body], options),
  changeGraph: (c, options, body) => c.changeGraph("ns", Object.assign(body, { id: options.key }), options), // id and key are one thing
  changeNamespace: (c, _, body) => c.changeNamespace("ns", body),
  createNamespace: (c, _, body) => c.createNamespace(body),
  deleteNamespace: (c) => c.deleteNamespace("ns"),
  exportGraph: (c, options) => take(c.exportGraph("ns", options)),
  exportMemories: (c, options) => take(c.export("ns", options)),
  followEvents: (c, options) => take(c.events("ns", options)),
  forgetRecord: (c, options) => c.forget("ns", "id", options),
  getAudit: (c, options) => c.audit("ns", options),
  getCluster: (c) => c.cluster(),
  getEmbedder: (c) => c.embedder("ns"),
  getNamespace: (c) => c.namespace("ns"),
  getRecord: (c, options) => c.get("ns", "id", options),
  getRecordHistory: (c, options) => c.history("ns", "id", options),
  getStatus: (c, options) => c.status(options),
  getTimeline: (c, options) => c.timeline("ns", "id", options),
  listAuditedReads: (c, options) => c.auditedReads("ns", options),
  listNamespaces: (c, options) => c.namespacesPage(options),
  listRecords: (c, options) => c.list("ns", options),
  readGraph: (c, options) => c.readGraph("ns", options),
  reviseRecord: (c, options, body) => c.revise("ns", "id", body, options),
  searchMemories: (c, _, body) => c.search("ns", body),
  searchNamespaces: (c, _, body) => c.searchNamespaces(body),
  switchEmbedder: (c, _, body) => c.switchEmbedder("ns", body),
};

const ownName = { "If-Match": "if_version", "Idempotency-Key": "key", "Mneme-Agent": "as", "Last-Event-ID": undefined };

test("every operation has a method", () => {
  const said = described();
  assert.deepEqual(Object.keys(said).sort(), Object.keys(calls).sort());
  assert.deepEqual(Object.keys(operations).sort(), Object.keys(calls).sort());
  for (const [name, { method, path, parameters = [], responses }] of Object.entries(said)) {
    const named = (where) => parameters.filter((p) => p.in === where).map((p) => p.name);
    const { answer, ...how } = operations[name];
    assert.deepEqual(how, { method, path, query: named("query"), headers: named("header") });
    const media = Object.entries(responses).find(([status]) => status.startsWith("2"))[1].content;
    const schema = document.components.schemas[media["application/json"]?.schema.$ref.split("/").at(-1)];
    assert.equal(answer.length > 0, schema !== undefined, name);
    for (const field of [...answer, ...(schema?.required ?? [])]) assert.ok(answer.includes(field) && field in schema.properties, `${name}: ${field}`);
  }
});

test("every parameter and field reaches the node", async () => {
  for (const [name, { method, path, parameters = [], requestBody }] of Object.entries(described())) {
    const options = {};
    for (const p of parameters) {
      const own = p.name in ownName ? ownName[p.name] : p.name;
      if (p.in !== "path" && own !== undefined) options[own] = `some-${own}`;
    }
    const schema = requestBody?.content["application/json"].schema;
    const ref = (schema?.oneOf?.[0] ?? schema)?.$ref;
    const fields = ref === undefined ? [] : Object.keys(document.components.schemas[ref.split("/").at(-1)].properties);
    const body = Object.fromEntries(fields.map((field) => [field, `some-${field}`]));
    let sent;
    const recorder = async (url, init) => {
      sent = { url: new URL(url), ...init };
      throw new Error("recorded");
    };
    const client = new Client("http://node", { fetch: recorder, token: "t" });
    await assert.rejects(calls[name](client, options, body));
    assert.equal(sent.method, method, name);
    assert.equal(sent.url.pathname, path.replace("{ns}", "ns").replace("{id}", "id"), name);
    assert.equal(sent.headers.Authorization, "Bearer t");
    for (const p of parameters) {
      const arrived = { query: sent.url.searchParams.get(p.name), header: sent.headers[p.name] }[p.in];
      const agent = ["as", "Mneme-Agent"].includes(p.name); // two names of one thing
      const acting = sent.url.searchParams.get("as") ?? sent.headers["Mneme-Agent"];
      if (agent) assert.equal(acting, "some-as", `${name} ${p.name}`);
      else if (p.in !== "path" && p.name !== "Last-Event-ID") assert.equal(arrived, `some-${ownName[p.name] ?? p.name}`, `${name} ${p.name}`);
    }
    const arrived = sent.body === undefined ? {} : JSON.parse(sent.body);
    assert.deepEqual(Array.isArray(arrived) ? arrived[0] : arrived, body, name);
  }
});

test("who acts where nobody is named", async () => {
  for (const name of Object.keys(calls)) {
    let sent;
    const recorder = async (url, init) => {
      sent = { url: new URL(url), ...init };
      throw new Error("recorded");
    };
    await assert.rejects(calls[name](new Client("http://node", { fetch: recorder, agent: "agent-7" }), {}, { query: "q", operations: [] }));
    const acting = sent.url.searchParams.get("as") ?? sent.headers["Mneme-Agent"];
    const asks = ["getCluster", "getEmbedder", "getNamespace", "getStatus", "listNamespaces"].includes(name);
    assert.equal(acting, asks ? undefined : "agent-7", name);
  }
});

test("codes", async () => {
  const { enum: codes } = document.components.schemas.Problem.properties.code;
  for (const code of codes) {
    const error = problem({ type: "about:blank", status: 400, code, detail: "d", hint: "h" }, 400);
    assert.deepEqual([error.code, error.message, error.hint, error.status], [code, "d", "h", 400]);
    assert.ok(error instanceof MnemeError && error instanceof Error);
  }
  assert.equal(problem({ type: "about:blank", status: 400, code: "of_a_newer_node", title: "t" }, 400).code, "internal");
  assert.equal(problem({ type: "about:blank", status: 400, title: "t" }, 400), undefined);
});

test("no dependencies", async () => {
  const said = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));
  assert.equal(said.dependencies, undefined);
});

test("streams", () => {
  const text = "id: p1\r\ndata: a\ndata:b\n: comment\n\nid: p2\n\nevent: error\ndata: \u00e4\n\ndata: unfinished\n";
  const want = [
    { id: "p1", name: "", data: "a\nb" },
    { id: "p2", name: "", data: "" },
    { id: "", name: "error", data: "\u00e4" },
  ];
  for (const size of [1, 2, 7, 1000]) {
    const parser = new Parser();
    const got = [];
    for (let i = 0; i < text.length; i += size) got.push(...parser.feed(text.slice(i, i + size)));
    assert.deepEqual(got, want);
  }
  assert.throws(() => new Parser().feed("x".repeat((4 << 20) + 1)));
});
