"""How requests are made, written from the node's OpenAPI document by test/sdk. Do not edit."""

from __future__ import annotations

from typing import NamedTuple


class Operation(NamedTuple):
    """One operation of the document."""

    method: str
    path: str
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


OPERATIONS = {
    "cancelEmbedderSwitch": Operation(
        "DELETE",
        "/v1/namespaces/{ns}/embedder/building",
    ),
    "captureMemories": Operation(
        "POST",
        "/v1/namespaces/{ns}/events",
        query=("wait", "origin", "as",),
        headers=("Mneme-Agent", "Idempotency-Key",),
    ),
    "changeGraph": Operation(
        "POST",
        "/v1/namespaces/{ns}/graph",
        query=("as",),
        headers=("Mneme-Agent", "Idempotency-Key",),
    ),
    "changeNamespace": Operation(
        "PATCH",
        "/v1/namespaces/{ns}",
    ),
    "createNamespace": Operation(
        "POST",
        "/v1/namespaces",
    ),
    "deleteNamespace": Operation(
        "DELETE",
        "/v1/namespaces/{ns}",
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
    ),
    "getAudit": Operation(
        "GET",
        "/v1/namespaces/{ns}/audit",
        query=("cursor", "limit", "from", "actor", "type", "since", "until", "as", "at_least",
            "consistency",),
        headers=("Mneme-Agent",),
    ),
    "getCluster": Operation(
        "GET",
        "/v1/cluster",
    ),
    "getEmbedder": Operation(
        "GET",
        "/v1/namespaces/{ns}/embedder",
    ),
    "getNamespace": Operation(
        "GET",
        "/v1/namespaces/{ns}",
    ),
    "getRecord": Operation(
        "GET",
        "/v1/namespaces/{ns}/records/{id}",
        query=("version", "as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
    ),
    "getRecordHistory": Operation(
        "GET",
        "/v1/namespaces/{ns}/records/{id}/history",
        query=("as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
    ),
    "getStatus": Operation(
        "GET",
        "/v1/status",
        query=("local",),
    ),
    "getTimeline": Operation(
        "GET",
        "/v1/namespaces/{ns}/records/{id}/timeline",
        query=("before", "after", "max_text", "fields", "budget", "as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
    ),
    "listAuditedReads": Operation(
        "GET",
        "/v1/namespaces/{ns}/audit/reads",
        query=("cursor", "limit", "agent", "record", "since", "until", "as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
    ),
    "listNamespaces": Operation(
        "GET",
        "/v1/namespaces",
        query=("cursor", "limit",),
    ),
    "listRecords": Operation(
        "GET",
        "/v1/namespaces/{ns}/records",
        query=("cursor", "limit", "uri", "kind", "tag", "agent", "scope", "conversation", "purpose", "since",
            "until", "max_text", "fields", "budget", "as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
    ),
    "readGraph": Operation(
        "GET",
        "/v1/namespaces/{ns}/graph",
        query=("query", "name", "as", "at_least", "consistency",),
        headers=("Mneme-Agent",),
    ),
    "reviseRecord": Operation(
        "PATCH",
        "/v1/namespaces/{ns}/records/{id}",
        query=("as",),
        headers=("Mneme-Agent", "If-Match", "Idempotency-Key",),
    ),
    "searchMemories": Operation(
        "POST",
        "/v1/namespaces/{ns}/search",
        query=("as",),
        headers=("Mneme-Agent",),
    ),
    "searchNamespaces": Operation(
        "POST",
        "/v1/search",
        query=("as",),
        headers=("Mneme-Agent",),
    ),
    "switchEmbedder": Operation(
        "POST",
        "/v1/namespaces/{ns}/embedder",
    ),
}
