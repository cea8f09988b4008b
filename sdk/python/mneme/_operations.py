"""How requests are made, written from the node's OpenAPI document by test/sdk. Do not edit."""

from __future__ import annotations

from typing import NamedTuple


class Operation(NamedTuple):
    """One operation of the document."""

    method: str
    path: str
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()  # the names that its JSON always has


OPERATIONS = {
    "cancelEmbedderSwitch": Operation(
        "DELETE",
        "/v1/namespaces/{ns}/embedder/building",
        answer=("namespace", "state", "embedder", "records", "vectors", "pending_vectors", "kept",
            "position",),
    ),
    "captureMemories": Operation(
        "POST",
        "/v1/namespaces/{ns}/events",
        query=("wait", "origin", "as",),
        headers=("Mneme-Agent", "Idempotency-Key",),
        answer=("position", "results",),
    ),
    "changeGraph": Operation(
        "POST",
        "/v1/namespaces/{ns}/graph",
        query=("as",),
        headers=("Mneme-Agent", "Idempotency-Key",),
        answer=("position", "status", "results",),
    ),
    "changeNamespace": Operation(
        "PATCH",
        "/v1/namespaces/{ns}",
        answer=("name", "id", "created_at", "settings", "embedder", "space", "records", "pending_vectors",
            "state_hash", "position",),
    ),
    "createNamespace": Operation(
        "POST",
        "/v1/namespaces",
        answer=("name", "id", "created_at", "settings", "embedder", "space", "records", "pending_vectors",
            "state_hash", "position",),
    ),
    "deleteNamespace": Operation(
        "DELETE",
        "/v1/namespaces/{ns}",
        answer=("name", "position",),
    ),
    "exportGraph": Operation(
        "GET",
        "/v1/namespaces/{ns}/graph/export",
        query=("after", "as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
    ),
    "exportMemories": Operation(
        "GET",
        "/v1/namespaces/{ns}/export",
        query=("as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
    ),
    "followEvents": Operation(
        "GET",
        "/v1/namespaces/{ns}/events",
        query=("from", "follow", "as", "at_least", "consistency",),
        headers=("Last-Event-ID", "Mneme-Agent",),
    ),
    "forgetRecord": Operation(
        "DELETE",
        "/v1/namespaces/{ns}/records/{id}",
        query=("as",),
        headers=("Mneme-Agent", "If-Match",),
        answer=("record_id", "position",),
    ),
    "getAudit": Operation(
        "GET",
        "/v1/namespaces/{ns}/audit",
        query=("cursor", "limit", "from", "actor", "type", "since", "until", "as", "at_least",
            "consistency",),
        headers=("Mneme-Agent",),
        answer=("rows", "position",),
    ),
    "getCluster": Operation(
        "GET",
        "/v1/cluster",
        answer=("cluster_id", "nodes", "shards",),
    ),
    "getEmbedder": Operation(
        "GET",
        "/v1/namespaces/{ns}/embedder",
        answer=("namespace", "state", "embedder", "records", "vectors", "pending_vectors", "kept",
            "position",),
    ),
    "getNamespace": Operation(
        "GET",
        "/v1/namespaces/{ns}",
        answer=("name", "id", "created_at", "settings", "embedder", "space", "records", "pending_vectors",
            "state_hash", "position",),
    ),
    "getRecord": Operation(
        "GET",
        "/v1/namespaces/{ns}/records/{id}",
        query=("version", "as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
        answer=("record_id", "namespace", "uri", "version", "text", "kind", "agent", "scope", "origin",
            "occurred_at", "created_at", "position",),
    ),
    "getRecordHistory": Operation(
        "GET",
        "/v1/namespaces/{ns}/records/{id}/history",
        query=("as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
        answer=("record_id", "versions", "events", "position",),
    ),
    "getStatus": Operation(
        "GET",
        "/v1/status",
        query=("local",),
        answer=("cluster_id", "nodes", "shards", "embedder", "vector", "auth", "version", "uptime_s",),
    ),
    "getTimeline": Operation(
        "GET",
        "/v1/namespaces/{ns}/records/{id}/timeline",
        query=("before", "after", "max_text", "fields", "budget", "as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
        answer=("anchor", "before", "after", "position",),
    ),
    "listAuditedReads": Operation(
        "GET",
        "/v1/namespaces/{ns}/audit/reads",
        query=("cursor", "limit", "agent", "record", "since", "until", "as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
        answer=("reads", "position",),
    ),
    "listNamespaces": Operation(
        "GET",
        "/v1/namespaces",
        query=("cursor", "limit",),
        answer=("namespaces",),
    ),
    "listRecords": Operation(
        "GET",
        "/v1/namespaces/{ns}/records",
        query=("cursor", "limit", "uri", "kind", "tag", "agent", "scope", "conversation", "purpose", "since",
            "until", "max_text", "fields", "budget", "as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
        answer=("records", "position",),
    ),
    "readGraph": Operation(
        "GET",
        "/v1/namespaces/{ns}/graph",
        query=("query", "name", "as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
        answer=("entities", "relations", "position",),
    ),
    "reviseRecord": Operation(
        "PATCH",
        "/v1/namespaces/{ns}/records/{id}",
        query=("as",),
        headers=("Mneme-Agent", "If-Match", "Idempotency-Key",),
        answer=("record_id", "version", "position",),
    ),
    "searchMemories": Operation(
        "POST",
        "/v1/namespaces/{ns}/search",
        query=("as",),
        headers=("Mneme-Agent",),
        answer=("results", "position", "took_ms", "mode",),
    ),
    "searchNamespaces": Operation(
        "POST",
        "/v1/search",
        query=("as",),
        headers=("Mneme-Agent",),
        answer=("results", "position", "took_ms", "mode",),
    ),
    "switchEmbedder": Operation(
        "POST",
        "/v1/namespaces/{ns}/embedder",
        answer=("namespace", "state", "embedder", "records", "vectors", "pending_vectors", "kept",
            "position",),
    ),
}
