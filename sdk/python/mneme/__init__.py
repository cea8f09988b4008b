"""Client of Mneme, a memory for teams of AI agents.

    import mneme

    with mneme.Client(agent="agent-7") as memory:
        memory.capture("default", "deploys happen on Tuesdays", kind="practice")
        for hit in memory.search("default", "when do we deploy").results:
            print(hit.score, hit.text)

``AsyncClient`` is the same for asyncio. It needs nothing but the standard library.
"""

from .aio import AsyncClient
from .client import Client
from .errors import (
    Conflict,
    Forbidden,
    Gone,
    InternalError,
    Invalid,
    LogDiverged,
    LostPosition,
    MnemeError,
    NoSpace,
    NotFound,
    OutcomeUnknown,
    Overloaded,
    QuotaExceeded,
    StalePosition,
    TimedOut,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from .types import (
    Capture,
    Event,
    Filter,
    GraphDeletion,
    GraphEntity,
    GraphObservations,
    GraphOperation,
    GraphRelation,
    Hit,
    Record,
)

__all__ = [
    "AsyncClient",
    "Capture",
    "Client",
    "Conflict",
    "Event",
    "Filter",
    "Forbidden",
    "Gone",
    "GraphDeletion",
    "GraphEntity",
    "GraphObservations",
    "GraphOperation",
    "GraphRelation",
    "Hit",
    "InternalError",
    "Invalid",
    "LogDiverged",
    "LostPosition",
    "MnemeError",
    "NoSpace",
    "NotFound",
    "OutcomeUnknown",
    "Overloaded",
    "QuotaExceeded",
    "Record",
    "StalePosition",
    "TimedOut",
    "TooLarge",
    "Unauthenticated",
    "Unavailable",
]
