// What an agent does all day, against a real node.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client, MnemeError } from "mneme";
import { fresh, startNode, take } from "./harness.js";

let node;
before(async () => (node = await startNode()));
after(() => node.stop());

const fails = (code) => (error) => error instanceof MnemeError && error.code === code && error.message !== "";

test("capture and search", async () => {
  const { client, ns } = await fresh(node.url);
  const at = new Date("2026-01-31T08:00:00+02:00");
  const kept = await client.capture(ns, {
    text: "deploys happen on Tuesdays",
    kind: "practice",
    tags: ["deploy"],
    uri: "runbooks/deploy",
    occurred_at: at,
    metadata: { repo: "web", n: [1, null] },
    id: "k-1",
  });
  assert.deepEqual([kept.status, kept.id], ["created", "k-1"]);
  await assert.rejects(client.capture(ns, { text: "deploys happen on Wednesdays", id: "k-1" }), fails("conflict"));
  const found = await client.search(ns, {
    query: "when do we deploy",
    at_least: kept.position,
    filter: { kinds: ["practice"], tags: ["deploy"], until: new Date("2026-02-01") },
  });
  assert.deepEqual(found.results.map((hit) => hit.record_id), [kept.record_id]);
  const [hit] = found.results;
  assert.deepEqual([hit.text, hit.agent, hit.tags, hit.metadata], ["deploys happen on Tuesdays", "agent-7", ["deploy"], { repo: "web", n: [1, null] }]);
  assert.equal(new Date(hit.occurred_at).getTime(), at.getTime());
  assert.ok((await client.search(ns, { query: "deploys", explain: true, mode: "text" })).results[0].explain.parts.length > 0);
  assert.equal((await client.search(ns, { query: "zebra", mode: "text" })).nothing_found, true);
  const injected = await client.search(ns, { query: "when do we deploy", purpose: "inject" });
  assert.deepEqual(injected.results.map((hit) => hit.record_id), [kept.record_id]);
  await assert.rejects(client.search(ns, { query: "deploys", purpose: "fun" }), fails("invalid"));
});

test("audited reads", async () => {
  const { client, ns } = await fresh(node.url);
  const kept = await client.capture(ns, "deploys happen on Tuesdays");
  await client.search(ns, { query: "deploys", purpose: "inject" });
  assert.deepEqual((await client.auditedReads(ns)).reads, []);
  await client.changeNamespace(ns, { settings: { "audit.injections": "on" } });
  await client.search(ns, { query: "deploys", purpose: "inject" });
  await client.search(ns, { query: "deploys" });
  const { reads } = await client.auditedReads(ns, { agent: "agent-7", record: kept.record_id, limit: 5 });
  assert.deepEqual(reads.map((r) => [r.agent, r.purpose, r.given.map((g) => g.record_id)]), [["agent-7", "inject", [kept.record_id]]]);
});

test("a batch", async () => {
  const { client, ns } = await fresh(node.url);
  const items = [{ text: "one" }, { text: "two", id: "mine", agent: "agent-8" }, { text: "" }];
  const answer = await client.captureBatch(ns, items, { key: "b" });
  assert.deepEqual(answer.results.map((r) => r.status), ["created", "created", "rejected"]);
  assert.deepEqual(answer.results.slice(0, 2).map((r) => r.id), ["b/0", "mine"]);
  assert.equal(answer.results[2].error.code, "invalid");
  const again = await client.captureBatch(ns, items.slice(0, 2), { key: "b" });
  assert.deepEqual(again.results.map((r) => r.status), ["duplicate", "duplicate"]);
  assert.deepEqual((await client.list(ns)).records.map((r) => r.agent), ["agent-8", "agent-7"]);
  await assert.rejects(client.captureBatch(ns, []), fails("invalid"));
});

test("revise and forget", async () => {
  const { client, ns } = await fresh(node.url);
  const { record_id: id } = await client.capture(ns, { text: "deploys happen on Tuesdays", tags: ["deploy"], kind: "fact" });
  for (let i = 0; i < 2; i++) {
    const revised = await client.revise(ns, id, { text: "deploys happen on Wednesdays" }, { if_version: 1, key: "r-1" });
    assert.equal(revised.version, 2);
  }
  const record = await client.get(ns, id.slice(0, 12));
  assert.deepEqual([record.text, record.tags, record.kind, record.version], ["deploys happen on Wednesdays", ["deploy"], "fact", 2]);
  assert.equal((await client.get(ns, id, { version: 1 })).text, "deploys happen on Tuesdays");
  await client.revise(ns, id, { tags: [] });
  assert.equal((await client.get(ns, id)).tags, undefined);
  await assert.rejects(client.revise(ns, id, { text: "no" }, { if_version: 1 }), (error) => {
    assert.deepEqual([error.code, error.status], ["conflict", 409]);
    assert.match(error.hint, /build on version 3/);
    return true;
  });
  await assert.rejects(client.forget(ns, id, { if_version: 2 }), fails("conflict"));
  assert.equal((await client.forget(ns, id)).record_id, id);
  await assert.rejects(client.get(ns, id), fails("not_found"));
  await assert.rejects(client.forget(ns, id), fails("not_found"));
  const history = await client.history(ns, id);
  assert.deepEqual(history.versions.map((v) => v.version), [1, 2, 3]);
  assert.equal(history.events.at(-1).type, "memory.forgotten");
});

test("lists, timeline, audit, export", async () => {
  const { client, ns } = await fresh(node.url);
  const kept = [];
  for (let n = 0; n < 5; n++) {
    kept.push(await client.capture(ns, { text: `message ${n}`, conversation: "c", kind: n % 2 ? "message" : "fact", uri: `m/${n}` }));
  }
  const seen = [];
  let cursor;
  do {
    const page = await client.list(ns, { limit: 2, cursor });
    seen.push(...page.records.map((r) => r.text));
    cursor = page.cursor;
  } while (cursor !== undefined);
  assert.deepEqual(seen, [4, 3, 2, 1, 0].map((n) => `message ${n}`));
  assert.deepEqual((await client.list(ns, { kind: ["message"], conversation: "c" })).records.map((r) => r.text), ["message 3", "message 1"]);
  assert.equal((await client.list(ns, { uri: "m/2" })).records[0].text, "message 2");
  assert.equal((await client.get(ns, "m/2")).record_id, kept[2].record_id);
  assert.deepEqual((await client.list(ns, { max_text: 3, limit: 1, fields: ["text", "truncated"] })).records, [{ text: "mes", truncated: true }]);
  assert.equal((await client.list(ns, { since: new Date(Date.now() + 3_600_000) })).records.length, 0);
  const around = await client.timeline(ns, kept[2].record_id, { before: 1, after: 2 });
  assert.deepEqual([...around.before, around.anchor, ...around.after].map((r) => r.text), [1, 2, 3, 4].map((n) => `message ${n}`));
  const { rows } = await client.audit(ns, { actor: "agent-7", from: kept[2].position });
  assert.deepEqual(rows.map((row) => row.record_id), [kept[3].record_id, kept[4].record_id]);
  assert.deepEqual((await take(client.export(ns))).map((line) => line.text), [0, 1, 2, 3, 4].map((n) => `message ${n}`));
  await client.capture(ns, "read elsewhere", { origin: "import" });
  assert.deepEqual((await client.list(ns, { limit: 2 })).records.map((r) => r.origin), ["import", "capture"]);
});

test("the knowledge graph", async () => {
  const { client, ns } = await fresh(node.url);
  const ann = { name: "Ann", entityType: "person", observations: ["likes tea"] };
  const web = { name: "web", entityType: "", observations: ["is red"] };
  const owns = { from: "Ann", to: "web", relationType: "owns" };
  const uses = { from: "web", to: "nowhere", relationType: "" };
  const operations = [
    { create_entities: [ann, { ...web, observations: [] }] },
    { create_relations: [owns, uses] },
    { add_observations: [{ entityName: "web", contents: ["is red", "is red"] }] },
  ];
  const changed = await client.changeGraph(ns, { id: "g-1", operations });
  assert.equal(changed.status, "applied");
  assert.deepEqual(changed.results, [
    { entities: [ann, { ...web, observations: [] }] },
    { relations: [owns, uses] },
    { added: [{ entityName: "web", addedObservations: ["is red"] }] },
  ]);
  for (const again of [await client.changeGraph(ns, { id: "g-1", operations }), await client.changeGraph(ns, operations, { key: "g-1" })]) {
    assert.deepEqual(again, { ...changed, status: "duplicate" });
  }
  assert.equal((await client.changeGraph(ns, operations)).status, "unchanged");
  await assert.rejects(client.changeGraph(ns, operations.slice(0, 1), { key: "g-1" }), fails("conflict"));

  const read = async (options) => {
    const { entities, relations } = await client.readGraph(ns, options);
    return [entities, relations];
  };
  assert.deepEqual(await read({ at_least: changed.position, consistency: "linearizable" }), [[ann, web], [owns, uses]]);
  assert.deepEqual(await read({ query: "LIKES tea" }), [[ann], [owns]]);
  assert.deepEqual(await read({ query: "zebra" }), [[], []]);
  assert.deepEqual(await read({ query: "" }), [[ann, web], [owns, uses]]);
  assert.deepEqual(await read({ name: ["web", "unknown"] }), [[web], [owns, uses]]);
  assert.deepEqual(await read({ name: [] }), [[], []]);
  await assert.rejects(client.readGraph(ns, { query: "", name: [] }), fails("invalid"));

  assert.deepEqual(await take(client.exportGraph(ns, { at_least: changed.position })), [
    { type: "entity", ...ann },
    { type: "entity", ...web },
    { type: "relation", ...owns },
    { type: "relation", ...uses },
  ]);
  const behind = await take(client.exportGraph(ns, { after: "Ann" }));
  assert.deepEqual(behind.slice(0, 2), [{ type: "entity", ...web }, { type: "relation", ...owns }]);
  await assert.rejects(client.exportGraph(ns, { after: "Nobody" }).next(), fails("not_found"));
  await assert.rejects(client.exportGraph("nowhere").next(), fails("not_found"));

  const deletions = [
    { delete_observations: [{ entityName: "web", observations: ["is red"] }] },
    { delete_relations: [uses] },
    { delete_entities: ["Ann"] },
  ];
  const deleted = await client.changeGraph(ns, deletions, { as: "agent-8" });
  assert.deepEqual(deleted.results, [{ deleted: { observations: 1 } }, { deleted: { relations: 1 } }, { deleted: { entities: 1, relations: 1 } }]);
  assert.deepEqual(await read(), [[{ ...web, observations: [] }], []]);
});

test("changes of the graph that are refused", async () => {
  const { client, ns } = await fresh(node.url);
  const ann = { create_entities: [{ name: "Ann", entityType: "person", observations: [] }] };
  await assert.rejects(client.changeGraph(ns, [ann, { add_observations: [{ entityName: "Bob", contents: ["likes tea"] }] }]), (error) => {
    assert.equal(error.code, "not_found");
    assert.match(error.message, /there is no entity "Bob"/);
    assert.match(error.hint, /create_entities/);
    return true;
  });
  assert.deepEqual((await client.readGraph(ns)).entities, []);
  await assert.rejects(client.changeGraph(ns, []), fails("invalid"));
  await assert.rejects(client.changeGraph(ns, [{}]), fails("invalid"));
  await assert.rejects(client.changeGraph(ns, { subject: "ann", operations: [{ delete_entities: ["Ann"] }] }), fails("invalid"));
  await assert.rejects(new Client(node.url).changeGraph(ns, [ann]), fails("invalid"));
  assert.equal((await client.changeGraph(ns, { subject: "ann", operations: [ann] })).status, "applied");
});

test("private memories", async () => {
  const { client, ns } = await fresh(node.url);
  await client.capture(ns, { text: "my password hint is a bird", scope: "agent" });
  assert.equal((await client.search(ns, "password")).results.length, 1);
  assert.equal((await client.search(ns, { query: "password", as: "agent-8" })).results.length, 0);
  assert.equal((await client.list(ns, { as: "agent-8" })).records.length, 0);
});

test("namespaces", async () => {
  const { client, ns: one } = await fresh(node.url);
  const { ns: two } = await fresh(node.url);
  await client.capture(one, "the oncall phone lies in the drawer");
  await client.capture(two, "the oncall phone is with Ann");
  const found = await client.searchNamespaces({ namespaces: [one, two], query: "oncall phone" });
  assert.deepEqual(new Set(found.results.map((hit) => hit.namespace)), new Set([one, two]));
  const names = (await client.namespaces()).map((ns) => ns.name);
  assert.ok(names.includes(one) && names.includes(two));
  assert.deepEqual((await client.changeNamespace(one, { settings: { "search.vector_weight": "0.7" } })).settings, { "search.vector_weight": "0.7" });
  assert.deepEqual((await client.changeNamespace(one, { settings: { "search.vector_weight": null } })).settings, {});
  await assert.rejects(client.createNamespace(one), fails("conflict"));
  assert.equal((await client.namespace(one)).records, 1);
  assert.equal((await client.embedder(one)).state, "ready");
  await assert.rejects(client.cancelEmbedderSwitch(one), MnemeError);
  assert.equal((await client.switchEmbedder(one, { provider: "builtin" })).embedder.provider, "builtin");
  assert.equal((await client.deleteNamespace(two)).name, two);
  await assert.rejects(client.search(two, "oncall"), (error) => /memctl namespace create/.test(error.hint));
});

test("the node", async () => {
  const client = new Client(node.url);
  assert.equal((await client.status({ local: true })).auth, "off");
  assert.equal((await client.cluster()).nodes[0].role, "voter");
  assert.equal(client.address, node.url);
});

test("a feed", async () => {
  const { client, ns } = await fresh(node.url);
  const kept = [];
  for (let n = 0; n < 3; n++) kept.push(await client.capture(ns, `event ${n}`));
  const events = await take(client.events(ns, { from: kept[0].position, follow: false }));
  assert.deepEqual(events.map((event) => event.data.text), ["event 1", "event 2"]);
  assert.deepEqual(events.map((event) => event.position), [kept[1].position, kept[2].position]);
  const live = client.events(ns, { from: kept[2].position });
  const later = await client.capture(ns, "event 3");
  assert.equal((await live.next()).value.subject, later.record_id);
  await live.return();
  await assert.rejects(client.events("nowhere").next(), fails("not_found"));
  const ends = new AbortController();
  const waiting = client.events(ns, { signal: ends.signal }).next();
  ends.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
});

test("positions", async () => {
  const { client, ns } = await fresh(node.url);
  const kept = await client.capture(ns, "the ship lies in the harbour", { wait: "accepted" });
  const found = await client.search(ns, { query: "harbour", at_least: kept.position });
  assert.equal(found.results[0].text, "the ship lies in the harbour");
  assert.ok((await client.list(ns, { at_least: kept.position, consistency: "linearizable" })).position >= kept.position);
  await assert.rejects(client.get(ns, kept.record_id, { at_least: "nonsense" }), fails("invalid"));
});

test("what is refused", async () => {
  const { client, ns } = await fresh(node.url);
  await assert.rejects(client.capture(ns, ""), fails("invalid"));
  await assert.rejects(client.search(ns, ""), fails("invalid"));
  await assert.rejects(client.search(ns, { query: "x", limit: 0 }), fails("invalid"));
  await assert.rejects(client.list(ns, { colour: "blue" }), /takes no colour/);
  await assert.rejects(client.capture("No Name", "x"), fails("invalid"));
  await assert.rejects(new Client(node.url, { token: "two\nlines" }).status(), fails("invalid"));
  await assert.rejects(new Client(node.url, { agent: "J\u00f6rg" }).forget(ns, "x"), fails("invalid"));
  await assert.rejects(client.capture(ns, "x".repeat(257 << 10)), fails("too_large"));
});

test("a name that is missing went into the address", async () => {
  // "" had the node say that there is nothing at /v1/namespaces//events, and ".." that fetch asked for another address.
  const client = new Client(node.url, { fetch: async (url) => assert.fail(`it asked for ${url}`) });
  for (const name of ["", ".", "..", undefined, null]) {
    await assert.rejects(client.capture(name, "x"), fails("invalid"));
    await assert.rejects(client.get("default", name), fails("invalid"));
    await assert.rejects(client.forget("default", name), fails("invalid"));
    await assert.rejects(client.deleteNamespace(name), fails("invalid"));
    await assert.rejects(client.events(name).next(), fails("invalid"));
  }
  await assert.rejects(new Client(node.url).capture("default"), fails("invalid"));
});
