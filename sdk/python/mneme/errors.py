"""Errors: one class for each code, so that ``except mneme.NotFound`` says what is meant."""

from __future__ import annotations

from typing import ClassVar


class MnemeError(Exception):
    """What went wrong, for people: what happened, to what, and what to do next.

    ``code`` is Mneme's code, ``message`` what happened, ``hint`` what to do ("" where there is
    nothing to say), ``status`` the HTTP status (0 where no node answered), ``retry_after``
    how many seconds to wait before trying again (0 where the node did not say), and ``foreign`` whether
    something answered that is no memnode, such as a proxy in between: its code is a guess from the HTTP
    status then, and decides nothing.
    """

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, hint: str = "", *, status: int = 0, retry_after: float = 0.0, foreign: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status
        self.retry_after = retry_after
        self.foreign = foreign

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class Invalid(MnemeError):
    """The request itself is wrong; sending it again will not help."""

    code = "invalid"


class Unauthenticated(MnemeError):
    """There is no credential, or a wrong one."""

    code = "unauthenticated"


class Forbidden(MnemeError):
    """Who asks is known, but not allowed."""

    code = "forbidden"


class NotFound(MnemeError):
    """There is no such thing, or it was forgotten."""

    code = "not_found"


class Conflict(MnemeError):
    """It contradicts what is there."""

    code = "conflict"


class StalePosition(MnemeError):
    """The node has not reached the position that was asked for."""

    code = "stale_position"


class LostPosition(MnemeError):
    """The position belongs to a part of the log that was lost."""

    code = "lost_position"


class Gone(MnemeError):
    """It was erased."""

    code = "gone"


class TooLarge(MnemeError):
    """It is above a limit."""

    code = "too_large"


class QuotaExceeded(MnemeError):
    """It is above what this caller may use."""

    code = "quota"


class Overloaded(MnemeError):
    """Too much at once; try again later."""

    code = "overloaded"


class Unavailable(MnemeError):
    """Not now; try again later."""

    code = "unavailable"


class LogDiverged(MnemeError):
    """Log and state disagree; writes are stopped."""

    code = "log_diverged"


class NoSpace(MnemeError):
    """The node's disk is full."""

    code = "no_space"


class OutcomeUnknown(MnemeError):
    """The write may or may not have happened."""

    code = "outcome_unknown"


class TimedOut(MnemeError):
    """The time for the request has passed."""

    code = "timeout"


class InternalError(MnemeError):
    """A defect in Mneme."""

    code = "internal"


BY_CODE: dict[str, type[MnemeError]] = {kind.code: kind for kind in MnemeError.__subclasses__()}
"""The classes by their codes."""

TRANSIENT = (Unavailable, Overloaded, TimedOut, OutcomeUnknown, NoSpace, LogDiverged)
"""Those that say nothing about the request itself."""
