"""What an agent does all day, against a real node."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import mneme

from . import harness


def setUpModule() -> None:
    harness.Case.node = harness.Node()


def tearDownModule() -> None:
    harness.Case.node.stop()


class Memories:
    def test_capture_and_search(self) -> None:
        client = self.client()
        ns = self.namespace(client)
        at = datetime(2026, 1, 31, 8, 0, tzinfo=timezone(timedelta(hours=2)))
        kept = client.capture(
            ns, "deploys happen on Tuesdays", kind="practice", role="user", uri="runbooks/deploy", tags=["deploy"],
            conversation="c-1", importance=0.5, occurred_at=at, metadata={"repo": "web", "n": [1, None]}, id="k-1",
        )  # fmt: skip
        self.assertEqual((kept.status, kept.id), ("created", "k-1"))
        with self.assertRaises(mneme.Conflict):
            client.capture(ns, "deploys happen on Wednesdays", id="k-1")
        found = client.search(ns, "when do we deploy", at_least=kept.position, filter=mneme.Filter(kinds=["practice"], tags=["deploy"]))
        self.assertEqual([hit.record_id for hit in found.results], [kept.record_id])
        hit = found.results[0]
        self.assertEqual((hit.text, hit.agent, hit.tags, hit.occurred_at), ("deploys happen on Tuesdays", "agent-7", ["deploy"], at))
        self.assertEqual(hit.metadata, {"repo": "web", "n": [1, None]})
        self.assertGreater(hit.score, 0)
        self.assertIsNone(hit.explain)
        explained = client.search(ns, "deploys", explain=True, limit=1, mode="text", fields=["record_id", "explain"])
        self.assertTrue(explained.results[0].explain.parts)
        self.assertEqual(explained.results[0].text, "")
        self.assertTrue(client.search(ns, "zebra", mode="text").nothing_found)
        self.assertEqual([hit.record_id for hit in client.search(ns, "when do we deploy", purpose="inject").results], [kept.record_id])
        with self.assertRaises(mneme.Invalid):
            client.search(ns, "deploys", purpose="fun")

    def test_audited_reads(self) -> None:
        client = self.client()
        ns = self.namespace(client)
        kept = client.capture(ns, "deploys happen on Tuesdays")
        client.search(ns, "deploys", purpose="inject")
        self.assertEqual(client.audited_reads(ns).reads, [])
        client.change_namespace(ns, {"audit.injections": "on"})
        client.search(ns, "deploys", purpose="inject")
        client.search(ns, "deploys")
        page = client.audited_reads(ns, agent="agent-7", record=kept.record_id, limit=5)
        self.assertEqual([(r.agent, r.purpose, [g.record_id for g in r.given]) for r in page.reads], [("agent-7", "inject", [kept.record_id])])

    def test_batch(self) -> None:
        client = self.client()
        ns = self.namespace(client)
        items = [mneme.Capture(text="one"), mneme.Capture(text="two", id="mine", agent="agent-8"), mneme.Capture(text="")]
        answer = client.capture_batch(ns, items, key="b")
        self.assertEqual([r.status for r in answer.results], ["created", "created", "rejected"])
        self.assertEqual([r.id for r in answer.results[:2]], ["b/0", "mine"])
        self.assertEqual(answer.results[2].error.code, "invalid")
        again = client.capture_batch(ns, items[:2], key="b")
        self.assertEqual([r.status for r in again.results], ["duplicate", "duplicate"])
        self.assertEqual([r.agent for r in client.list(ns).records], ["agent-8", "agent-7"])
        with self.assertRaises(mneme.Invalid):
            client.capture_batch(ns, [])

    def test_revise_and_forget(self) -> None:
        client = self.client()
        ns = self.namespace(client)
        kept = client.capture(ns, "deploys happen on Tuesdays", tags=["deploy"], kind="fact")
        revised = client.revise(ns, kept.record_id, text="deploys happen on Wednesdays", if_version=1, key="r-1")
        self.assertEqual(revised.version, 2)
        self.assertEqual(client.revise(ns, kept.record_id, text="deploys happen on Wednesdays", if_version=1, key="r-1").version, 2)
        record = client.get(ns, kept.record_id[:12], at_least=revised.position)
        self.assertEqual((record.text, record.tags, record.kind, record.version), ("deploys happen on Wednesdays", ["deploy"], "fact", 2))
        self.assertEqual(client.get(ns, kept.record_id, version=1).text, "deploys happen on Tuesdays")
        self.assertEqual(client.revise(ns, kept.record_id, tags=[]).version, 3)
        self.assertEqual(client.get(ns, kept.record_id).tags, [])
        with self.assertRaises(mneme.Conflict) as caught:
            client.revise(ns, kept.record_id, text="no", if_version=1)
        self.assertEqual((caught.exception.code, caught.exception.status), ("conflict", 409))
        self.assertIn("build on version 3", caught.exception.hint)
        self.assertIn("version 3", caught.exception.message)
        with self.assertRaises(mneme.Conflict):
            client.forget(ns, kept.record_id, if_version=2)
        gone = client.forget(ns, kept.record_id)
        self.assertEqual(gone.record_id, kept.record_id)
        for read in (client.get, client.forget):
            with self.assertRaises(mneme.NotFound):
                read(ns, kept.record_id)
        history = client.history(ns, kept.record_id)
        self.assertEqual([v.version for v in history.versions], [1, 2, 3])
        self.assertEqual(history.events[-1].type, "memory.forgotten")

    def test_lists(self) -> None:
        client = self.client()
        ns = self.namespace(client)
        kept = [client.capture(ns, f"message {n}", conversation="c", kind="message" if n % 2 else "fact", uri=f"m/{n}") for n in range(5)]
        seen, cursor = [], None
        while cursor != "":
            page = client.list(ns, limit=2, cursor=cursor)
            seen += [record.text for record in page.records]
            cursor = page.cursor
        self.assertEqual(seen, [f"message {n}" for n in (4, 3, 2, 1, 0)])
        self.assertEqual([r.text for r in client.list(ns, kind=["message"], conversation="c").records], ["message 3", "message 1"])
        self.assertEqual([r.text for r in client.list(ns, uri="m/2").records], ["message 2"])
        self.assertEqual(client.get(ns, "m/2").record_id, kept[2].record_id)
        short = client.list(ns, max_text=3, fields=["text", "truncated"]).records[0]
        self.assertEqual((short.truncated, short.record_id), (True, ""))
        around = client.timeline(ns, kept[2].record_id, before=1, after=2)
        self.assertEqual([r.text for r in around.before + [around.anchor] + around.after], [f"message {n}" for n in (1, 2, 3, 4)])
        rows = client.audit(ns, actor="agent-7", from_=kept[2].position).rows
        self.assertEqual([row.record_id for row in rows], [kept[3].record_id, kept[4].record_id])
        self.assertEqual([line.text for line in client.export(ns)], [f"message {n}" for n in range(5)])
        client.capture(ns, "read elsewhere", origin="import")
        self.assertEqual([record.origin for record in client.list(ns, limit=2).records], ["import", "capture"])

    def test_graph(self) -> None:
        client = self.client()
        ns = self.namespace(client)
        ann = mneme.GraphEntity(name="Ann", entityType="person", observations=["likes tea"])
        web = mneme.GraphEntity(name="web", entityType="", observations=[])
        owns = mneme.GraphRelation(from_="Ann", to="web", relationType="owns")
        uses = mneme.GraphRelation(from_="web", to="nowhere", relationType="")
        steps = [
            mneme.GraphOperation(create_entities=[ann, web]),
            mneme.GraphOperation(create_relations=[owns, uses]),
            mneme.GraphOperation(add_observations=[mneme.GraphObservations(entityName="web", contents=["is red", "is red"])]),
        ]
        changed = client.change_graph(ns, steps, id="g-1")
        self.assertEqual(changed.status, "applied")
        self.assertEqual([e.name for e in changed.results[0].entities], ["Ann", "web"])
        self.assertEqual(changed.results[1].relations, [owns, uses])
        self.assertEqual((changed.results[2].added[0].entityName, changed.results[2].added[0].addedObservations), ("web", ["is red"]))
        again = client.change_graph(ns, steps, id="g-1")
        self.assertEqual((again.status, again.position, again.results), ("duplicate", changed.position, changed.results))
        self.assertEqual(client.change_graph(ns, steps).status, "unchanged")
        with self.assertRaises(mneme.Conflict):
            client.change_graph(ns, steps[:1], id="g-1")

        web = mneme.GraphEntity(name="web", entityType="", observations=["is red"])
        graph = client.read_graph(ns, at_least=changed.position, consistency="linearizable")
        self.assertEqual((graph.entities, graph.relations), ([ann, web], [owns, uses]))
        found = client.read_graph(ns, query="LIKES tea")
        self.assertEqual((found.entities, found.relations), ([ann], [owns]))
        self.assertEqual(client.read_graph(ns, query="zebra").entities, [])
        self.assertEqual(client.read_graph(ns, query="").entities, [ann, web])
        opened = client.read_graph(ns, name=["web", "unknown"])
        self.assertEqual((opened.entities, opened.relations), ([web], [owns, uses]))
        self.assertEqual(client.read_graph(ns, name="Ann").entities, [ann])
        for none in ([], "", ()):
            self.assertEqual(client.read_graph(ns, name=none).entities, [])
        with self.assertRaises(mneme.Invalid):
            client.read_graph(ns, query="", name=[])

        lines = list(client.export_graph(ns, at_least=changed.position))
        self.assertEqual([line.type for line in lines], ["entity", "entity", "relation", "relation"])
        self.assertEqual([(line.name, line.entityType, line.observations) for line in lines[:2]], [("Ann", "person", ["likes tea"]), ("web", "", ["is red"])])
        self.assertEqual([(line.from_, line.relationType, line.to) for line in lines[2:]], [("Ann", "owns", "web"), ("web", "", "nowhere")])
        self.assertEqual([line.name or line.from_ for line in client.export_graph(ns, after="Ann")], ["web", "Ann", "web"])
        for of, after in (("nowhere", None), (ns, "Nobody")):
            with self.assertRaises(mneme.NotFound):
                next(client.export_graph(of, after=after))

        lost = [mneme.GraphDeletion(entityName="web", observations=["is red"])]
        deleted = client.change_graph(
            ns,
            [
                mneme.GraphOperation(delete_observations=lost),
                mneme.GraphOperation(delete_relations=[uses]),
                mneme.GraphOperation(delete_entities=["Ann"]),
            ],
            agent="agent-8",
        )
        counts = [(r.deleted.entities, r.deleted.relations, r.deleted.observations) for r in deleted.results]
        self.assertEqual(counts, [(0, 0, 1), (0, 1, 0), (1, 1, 0)])
        left = client.read_graph(ns)
        self.assertEqual(([e.name for e in left.entities], left.entities[0].observations, left.relations), (["web"], [], []))

    def test_graph_changes_that_are_refused(self) -> None:
        client = self.client()
        ns = self.namespace(client)
        ann = mneme.GraphOperation(create_entities=[mneme.GraphEntity(name="Ann", entityType="person", observations=[])])
        nobody = mneme.GraphObservations(entityName="Bob", contents=["likes tea"])
        with self.assertRaises(mneme.NotFound) as caught:
            client.change_graph(ns, [ann, mneme.GraphOperation(add_observations=[nobody])])
        self.assertIn('there is no entity "Bob"', caught.exception.message)
        self.assertIn("create_entities", caught.exception.hint)
        self.assertEqual(client.read_graph(ns).entities, [])
        for refused in (
            lambda: client.change_graph(ns, []),
            lambda: client.change_graph(ns, [mneme.GraphOperation()]),
            lambda: client.change_graph(ns, [mneme.GraphOperation(delete_entities=["Ann"])], subject="ann"),
            lambda: self.client(agent=None).change_graph(ns, [ann]),
        ):
            with self.assertRaises(mneme.Invalid):
                refused()
        self.assertEqual(client.change_graph(ns, [ann], subject="ann").status, "applied")

    def test_private_memories(self) -> None:
        client = self.client()
        ns = self.namespace(client)
        client.capture(ns, "my password hint is a bird", scope="agent")
        self.assertEqual(len(client.search(ns, "password").results), 1)
        self.assertEqual(client.search(ns, "password", as_="agent-8").results, [])
        with self.assertRaises(mneme.Invalid):  # nobody is acting
            self.client(agent=None).forget(ns, client.list(ns).records[0].record_id)

    def test_namespaces(self) -> None:
        client = self.client()
        one, two = self.namespace(client), self.namespace(client)
        client.capture(one, "the oncall phone lies in the drawer")
        client.capture(two, "the oncall phone is with Ann")
        found = client.search_namespaces([one, two], "oncall phone")
        self.assertEqual({hit.namespace for hit in found.results}, {one, two})
        self.assertLessEqual({one, two}, {ns.name for ns in client.namespaces()})
        changed = client.change_namespace(one, {"search.vector_weight": "0.7"})
        self.assertEqual(changed.settings, {"search.vector_weight": "0.7"})
        self.assertEqual(client.change_namespace(one, {"search.vector_weight": None}).settings, {})
        with self.assertRaises(mneme.Conflict):
            client.create_namespace(one)
        self.assertEqual(client.namespace(one).records, 1)
        self.assertEqual(client.embedder(one).state, "ready")
        with self.assertRaises(mneme.MnemeError):
            client.cancel_embedder_switch(one)
        self.assertEqual(client.switch_embedder(one, "builtin").embedder.provider, "builtin")
        self.assertEqual(client.delete_namespace(two).name, two)
        with self.assertRaises(mneme.NotFound) as caught:
            client.search(two, "oncall")
        self.assertIn("memctl namespace create", caught.exception.hint)

    def test_the_node(self) -> None:
        client = self.client()
        self.assertEqual(client.status(local=True).auth, "off")
        self.assertEqual(client.cluster().nodes[0].role, "voter")
        self.assertEqual(client.address, self.node.url)

    def test_feed(self) -> None:
        client = self.client()
        ns = self.namespace(client)
        kept = [client.capture(ns, f"event {n}") for n in range(3)]
        events = list(client.events(ns, from_=kept[0].position, follow=False))
        self.assertEqual([event.data["text"] for event in events], ["event 1", "event 2"])
        self.assertEqual([event.position for event in events], [k.position for k in kept[1:]])
        live = client.events(ns, from_=kept[2].position)
        later = client.capture(ns, "event 3")
        self.assertEqual(next(live).subject, later.record_id)
        live.close()
        with self.assertRaises(mneme.NotFound):
            next(client.events("nowhere"))

    def test_positions(self) -> None:
        client = self.client()
        ns = self.namespace(client)
        kept = client.capture(ns, "the ship lies in the harbour", wait="accepted")
        self.assertEqual(client.search(ns, "harbour", at_least=kept.position).results[0].text, "the ship lies in the harbour")
        self.assertGreaterEqual(client.list(ns, at_least=kept.position, consistency="linearizable").position, kept.position)
        with self.assertRaises(mneme.MnemeError) as caught:
            client.get(ns, kept.record_id, at_least="nonsense")
        self.assertEqual(caught.exception.code, "invalid")

    def test_what_is_refused(self) -> None:
        client = self.client()
        ns = self.namespace(client)
        for refused in (
            lambda: client.capture(ns, ""),
            lambda: client.search(ns, ""),
            lambda: client.search(ns, "x", limit=0),
            lambda: client.capture("No Name", "x"),
            lambda: client.get(ns, ".."),
        ):
            with self.assertRaises(mneme.MnemeError) as caught:
                refused()
            self.assertIn(caught.exception.code, ("invalid", "not_found"))
            self.assertTrue(caught.exception.message)
        for refused in (
            lambda: self.client(token="two\nlines").status(),
            lambda: self.client(agent="J\u00f6rg").forget(ns, "x"),
            lambda: client.search(ns, "x", min_score=float("nan")),
            lambda: client.capture(ns, "x", metadata={"what": object()}),
            lambda: client.capture("", "x"),
            lambda: client.get(ns, ""),
            lambda: client.forget(ns, ""),
            lambda: client.get(ns, None),
        ):
            with self.assertRaises(mneme.Invalid):
                refused()
        with self.assertRaises(mneme.TooLarge):
            client.capture(ns, "x" * (257 << 10))


MemoriesOfClient, MemoriesOfAsyncClient = harness.both(Memories)
del Memories
