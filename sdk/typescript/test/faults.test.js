// Answers that are lost, nodes that are away, TLS and tokens.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client, MnemeError } from "mneme";
import { first, fresh, nobody, program, startAnswering, startNode, startProxy, take } from "./harness.js";

let node;
before(async () => (node = await startNode()));
after(() => node.stop());

/** A client behind a proxy that cuts. */
async function cut(t, how, more = []) {
  const proxy = await startProxy(node.url, how);
  t.after(() => proxy.close());
  return { proxy, client: new Client([proxy.url, ...more], { agent: "agent-7" }) };
}

test("lost answer of a capture counts once", async (t) => {
  const { client: direct, ns } = await fresh(node.url);
  const { proxy, client } = await cut(t, first(1));
  const kept = await client.capture(ns, "said once");
  assert.deepEqual([kept.status, proxy.connections], ["duplicate", 2]);
  assert.deepEqual((await direct.list(ns)).records.map((r) => r.record_id), [kept.record_id]);
});

test("lost answer of a batch counts once", async (t) => {
  const { client: direct, ns } = await fresh(node.url);
  const { client } = await cut(t, first(1));
  const answer = await client.captureBatch(ns, [{ text: "a" }, { text: "b", id: "mine" }]);
  assert.deepEqual(answer.results.map((r) => r.status), ["duplicate", "duplicate"]);
  assert.equal((await direct.list(ns)).records.length, 2);
});

test("lost answer of a revision counts once", async (t) => {
  const { client: direct, ns } = await fresh(node.url);
  const { record_id: id } = await direct.capture(ns, "first");
  const { client } = await cut(t, first(1));
  assert.equal((await client.revise(ns, id, { text: "second" })).version, 2);
  assert.equal((await direct.history(ns, id)).versions.length, 2);
});

test("lost answer of a change of the graph counts once", async (t) => {
  const { client: direct, ns } = await fresh(node.url);
  const { proxy, client } = await cut(t, first(1));
  const ann = { name: "Ann", entityType: "person", observations: [] };
  const changed = await client.changeGraph(ns, [{ create_entities: [ann] }]);
  assert.deepEqual([changed.status, changed.results, proxy.connections], ["duplicate", [{ entities: [ann] }], 2]);
  const { client: deaf } = await cut(t, first(100));
  await assert.rejects(deaf.changeGraph(ns, { id: "g-1", operations: [{ delete_entities: ["Ann"] }] }), (error) => {
    assert.equal(error.code, "outcome_unknown");
    assert.match(error.hint, /the same id, g-1/);
    return true;
  });
  assert.deepEqual((await direct.readGraph(ns)).entities, []);
});

test("lost answer of a forget is unknown", async (t) => {
  const { client: direct, ns } = await fresh(node.url);
  const { record_id: id } = await direct.capture(ns, "first");
  const { proxy, client } = await cut(t, first(1));
  await assert.rejects(client.forget(ns, id), (error) => {
    assert.equal(error.code, "outcome_unknown");
    assert.match(error.hint, /look whether it happened/);
    return true;
  });
  assert.equal(proxy.connections, 1);
  await assert.rejects(direct.get(ns, id), (error) => error.code === "not_found");
});

test("all answers lost", async (t) => {
  const { client: direct, ns } = await fresh(node.url);
  const { client } = await cut(t, first(100));
  await assert.rejects(client.capture(ns, { text: "said once", id: "k-1" }), (error) => {
    assert.equal(error.code, "outcome_unknown");
    assert.match(error.hint, /the same id, k-1/);
    return true;
  });
  assert.equal((await direct.capture(ns, { text: "said once", id: "k-1" })).status, "duplicate");
  await assert.rejects(client.search(ns, "x"), (error) => error.code === "unavailable");
});

test("a read goes on at the next node", async (t) => {
  const { client: direct, ns } = await fresh(node.url);
  await direct.capture(ns, "found all the same");
  const { client } = await cut(t, first(1), [node.url]);
  assert.equal((await client.search(ns, "found")).results[0].text, "found all the same");
  assert.equal(client.address, node.url);
});

test("a node that is away", async () => {
  const away = await nobody();
  await assert.rejects(new Client(away).status(), (error) => {
    assert.equal(error.code, "unavailable");
    assert.ok(error.hint.includes(`is \`memnode\` running at ${away}`));
    return true;
  });
  const { client, ns } = await fresh([away, node.url]); // a write that has not left is sent to the next one
  assert.equal((await client.capture(ns, "here")).status, "created");
  assert.equal(client.address, node.url);
  await assert.rejects(new Client([away, away]).status(), /cannot reach .*; cannot reach/);
});

test("a node that refuses for now", async (t) => {
  const document = { type: "about:blank", title: "", status: 503, detail: "no leader", code: "unavailable" };
  const busy = await startAnswering(503, document, { "Retry-After": "7" });
  t.after(() => busy.close());
  await assert.rejects(new Client(busy.url).status(), (error) => error.message === "no leader" && error.retryAfter === 7);
  const { ns } = await fresh(node.url);
  const client = new Client(`${busy.url},${node.url}`, { agent: "agent-7" });
  assert.equal((await client.capture(ns, "here")).status, "created");
  // A namespace may have been begun.
  await assert.rejects(new Client([busy.url, node.url]).createNamespace("perhaps"), (error) => error.code === "unavailable");
});

test("what is no memnode", async (t) => {
  for (const [status, code] of [[404, "not_found"], [502, "unavailable"], [302, "unavailable"], [500, "internal"], [418, "invalid"]]) {
    const other = await startAnswering(status, "<html>", { Location: "http://127.0.0.1:1/" });
    t.after(() => other.close());
    await assert.rejects(new Client(other.url).status(), (error) => error.code === code && error.status === status);
  }
  const other = await startAnswering(200, "hello");
  t.after(() => other.close());
  await assert.rejects(new Client(other.url).status(), (error) => error.code === "internal");
});

test("a portal's answer passed for a success", async (t) => {
  for (const document of ["{}", "null", "[]", '"ok"', '{"status":"ok","message":"log in first"}', "<html>"]) {
    const portal = await startAnswering(200, document);
    t.after(() => portal.close());
    const client = new Client(portal.url, { agent: "agent-7" });
    const code = (want) => (error) => error instanceof MnemeError && error.code === want && error.foreign;
    const writes = [
      () => client.capture("a", "x"),
      () => client.captureBatch("a", [{ text: "x" }]),
      () => client.revise("a", "r", { text: "x" }),
      () => client.forget("a", "r"),
      () => client.changeGraph("a", [{ delete_entities: ["Ann"] }]),
      () => client.createNamespace("a"),
      () => client.deleteNamespace("a"),
    ];
    for (const write of writes) await assert.rejects(write, code("outcome_unknown"));
    for (const read of [() => client.get("a", "r"), () => client.search("a", "x"), () => client.status()]) await assert.rejects(read, code("internal"));
  }
});

test("a portal's answer passed for a stream", async (t) => {
  let portal;
  for (const media of ["", "text/html", "application/json", "text/plain; charset=utf-8"]) {
    for (const body of ["", "<html>", "{}"]) {
      portal = await startAnswering(200, body, media === "" ? {} : { "Content-Type": media });
      t.after(portal.close);
      const client = new Client(portal.url, { agent: "agent-7" });
      for (const read of [client.export("a"), client.exportGraph("a"), client.events("a"), client.events("a", { follow: false })]) {
        await assert.rejects(take(read), (error) => {
          assert.deepEqual([error.code, error.foreign], ["unavailable", true]);
          assert.ok(error.message.includes(`what answered is no memnode: it sent ${media || "nothing"}`), error.message);
          assert.match(error.hint, /is that a memnode\?/);
          return true;
        });
      }
      assert.equal(portal.asked, 4);
    }
  }
  const { client: direct, ns } = await fresh(node.url);
  await direct.capture(ns, "found all the same");
  const client = new Client([portal.url, node.url], { agent: "agent-7" });
  assert.deepEqual((await take(client.export(ns))).map((line) => line.text), ["found all the same"]);
  assert.equal(client.address, node.url);
  const empty = await startAnswering(200, "", { "Content-Type": "Application/X-NDJSON ; charset=utf-8" });
  t.after(empty.close);
  assert.deepEqual(await take(new Client(empty.url).export("a")), []);
});

test("half a line passed for the end of an export", async (t) => {
  for (const body of ['{"record_id":"r","text":"x"', "<html>\n"]) {
    const cut = await startAnswering(200, body, { "Content-Type": "application/x-ndjson" });
    t.after(cut.close);
    await assert.rejects(take(new Client(cut.url).export("a")), (error) => error.code === "unavailable" && !error.foreign);
  }
});

test("a feed outlasts a portal", async (t) => {
  const stream = { "Content-Type": "text/event-stream" };
  const event = (n) => [200, `id: p0.0.${n}.0\ndata: {"id":"e${n}"}\n\n`, stream];
  const portal = await startAnswering(401, "<html>", {}, 0, [event(1), [403, "<html>", {}], [200, "", {}], event(2)]);
  t.after(portal.close);
  const seen = [];
  const feed = new Client(portal.url).events("a");
  await assert.rejects(
    (async () => {
      for await (const { id } of feed) seen.push(id);
    })(),
    (error) => error.code === "unauthenticated" && error.foreign,
  );
  assert.deepEqual(seen, ["e1", "e2"]);
});

test("an answer of another version is a memnode's", async (t) => {
  const older = await startAnswering(200, { record_id: "r", version: 2, shard: 7 });
  t.after(() => older.close());
  assert.equal((await new Client(older.url).revise("a", "r", { text: "x" })).version, 2);
});

test("a proxy settled a lost answer", async (t) => {
  for (const status of [400, 403, 404, 409, 410, 413]) {
    const proxy = await startAnswering(status, "<html>", {}, 1);
    t.after(() => proxy.close());
    await assert.rejects(new Client(proxy.url, { agent: "agent-7" }).capture("a", { text: "x", id: "k-1" }), (error) => {
      assert.deepEqual([error.code, error.status], ["outcome_unknown", 0]);
      return true;
    });
  }
  const own = { type: "about:blank", title: "", status: 413, detail: "too long", code: "too_large" };
  const node = await startAnswering(413, own, {}, 1);
  t.after(() => node.close());
  await assert.rejects(new Client(node.url).capture("a", "x"), (error) => error.code === "too_large" && !error.foreign);
});

test("JSON of others passed for a memnode's", async (t) => {
  for (const document of [{ code: "gone", message: "no" }, { code: "gone", status: 404 }, { type: "about:blank", code: "gone", status: 410 }]) {
    const other = await startAnswering(404, document);
    t.after(() => other.close());
    await assert.rejects(new Client(other.url).status(), (error) => error.code === "not_found" && error.foreign && /answered 404/.test(error.message));
  }
});

test("a node that never answers, and a caller that leaves", async (t) => {
  const { proxy, client } = await cut(t, () => {});
  const stuck = (_, { signal }) =>
    new Promise((_, reject) => {
      const leave = () => reject(signal.reason);
      if (signal.aborted) leave();
      signal.addEventListener("abort", leave);
    });
  await assert.rejects(new Client(proxy.url, { fetch: stuck, timeout: 20 }).status(), (error) => error.code === "timeout");
  await assert.rejects(client.status({ signal: AbortSignal.abort(new Error("enough")) }), /enough/);
  const ends = new AbortController();
  const waiting = new Client(proxy.url, { fetch: stuck }).status({ signal: ends.signal });
  ends.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
});

test("what JSON has no form for, and what is no time", async () => {
  const client = new Client(node.url, { agent: "agent-7" });
  const invalid = (error) => error instanceof MnemeError && error.code === "invalid" && error.status === 0;
  const odd = [{ importance: NaN }, { occurred_at: new Date("never") }, { metadata: { a: [Infinity] } }, { metadata: { a: 1n } }, { tags: ["\ud800"] }];
  for (const more of odd) await assert.rejects(client.capture("default", { text: "x", ...more }), invalid);
  const kept = await client.capture("default", { text: "x 😀", metadata: { a: null }, occurred_at: new Date(0) });
  const record = await client.get("default", kept.record_id);
  assert.deepEqual([record.text, record.metadata, new Date(record.occurred_at).getTime()], ["x 😀", { a: null }, 0]);
  for (const timeout of [0, -1, NaN, Infinity, 2 ** 31, "1 s"]) assert.throws(() => new Client(node.url, { timeout }), invalid);
});

test("a feed goes on where it broke", async (t) => {
  const { client: direct, ns } = await fresh(node.url);
  const kept = [];
  for (let n = 0; n < 6; n++) kept.push(await direct.capture(ns, `event ${n}`));
  const { proxy, client } = await cut(t, (answer) => {
    const text = answer.toString("latin1"); // cut behind the second event of each connection
    if (text.split("data: ").length <= 3) return undefined;
    return text.split("\n\n").slice(0, 2).join("\n\n").length + 7;
  });
  const events = await take(client.events(ns, { from: "p0.0.0.0" }), 7);
  assert.deepEqual(events.map((event) => event.subject), [undefined, ...kept.map((k) => k.record_id)]);
  assert.ok(proxy.connections >= 3);
});

test("TLS and a token", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "mneme-typescript-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  execFileSync(program("memctl"), ["cluster", "certs", "--out", join(folder, "certs"), "--server", "mneme", "--client", "agents"]);
  const file = (name) => join(folder, "certs", "clients", name);
  const secure = await startNode("--auth", "token", "--tls-cert", file("mneme.crt"), "--tls-key", file("mneme.key"), "--tls-client-ca", file("ca.crt"));
  t.after(() => secure.stop());
  const token = (await readFile(join(secure.folder, "data", "keys", "operator.token"), "utf8")).trim();
  const own = { caFile: file("ca.crt"), certFile: file("agents.crt"), keyFile: file("agents.key") };
  const client = new Client(secure.url, { ...own, token, agent: "agent-7" });
  const kept = await client.capture("default", "sealed on the way");
  assert.equal((await take(client.events("default", { from: "p0.0.0.0" }), 1))[0].type, "io.mneme.namespace.created.v1");
  assert.equal((await client.get("default", kept.record_id)).text, "sealed on the way");
  const code = (want, hint = "") => (error) => error instanceof MnemeError && error.code === want && error.hint.includes(hint);
  await assert.rejects(new Client(secure.url, { ...own, token: "wrong" }).status(), code("unauthenticated"));
  await assert.rejects(new Client(secure.url, { token }).status(), code("unavailable", "caFile"));
  await assert.rejects(new Client(secure.url, { caFile: own.caFile, token }).status(), MnemeError);
  await assert.rejects(new Client(secure.url.replace("https", "http"), { token }).status(), code("unavailable", "https://"));
  await assert.rejects(new Client(secure.url, { caFile: join(folder, "none.crt") }).status(), code("invalid"));
  assert.throws(() => new Client(secure.url, { certFile: own.certFile }), code("invalid"));
});

test("addresses", () => {
  for (const [text, want] of [
    ["", "http://127.0.0.1:8787"],
    [":9000", "http://127.0.0.1:9000"],
    ["node", "http://node:8787"],
    ["tls://node", "https://node:8787"],
    ["https://node/v1/", "https://node:443"],
    ["http://node:1/mneme", "http://node:1/mneme"],
    ["[::1]:5", "http://[::1]:5"],
  ]) {
    assert.equal(new Client(text).address, want);
  }
  for (const text of ["ftp://node", "http://", "node:port", "http://a?b", "a,,b", "http://user@host"]) {
    assert.throws(() => new Client(text), (error) => error.code === "invalid", text);
  }
});
