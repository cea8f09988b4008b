"""JSON to types and back."""

from __future__ import annotations

import dataclasses
import functools
import re
import types
import typing
from datetime import datetime, timezone
from typing import Any, TypeVar

from . import errors

T = TypeVar("T")

_TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)$")


def parse_time(text: str) -> datetime:
    """Reads an RFC 3339 time; what is finer than a microsecond is cut off."""
    match = _TIME.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not an RFC 3339 time")
    base, fraction, zone = match.groups()
    digits = ((fraction or ".")[1:] + "000000")[:6]
    return datetime.fromisoformat(f"{base.upper()}.{digits}{'+00:00' if zone in 'Zz' else zone}")


def format_time(time: datetime) -> str:
    """Writes a time as RFC 3339; one without a zone is local."""
    return time.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def encode(value: Any) -> Any:
    """Makes JSON of a value: fields that are None or empty strings are left out of dataclasses."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((f.name.rstrip("_"), getattr(value, f.name)) for f in dataclasses.fields(value))
        return {name: encode(v) for name, v in pairs if v is not None and v != ""}
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, dict):
        return {name: encode(v) for name, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(v) for v in value]
    return value


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def decode(kind: Any, value: Any) -> Any:
    """Makes a value of a type; unknown fields are left out, missing ones are empty."""
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        inner = [k for k in typing.get_args(kind) if k is not type(None)]
        return None if value is None else decode(inner[0], value)
    if origin is list:
        (item,) = typing.get_args(kind)
        return [decode(item, v) for v in value or ()]
    if kind is datetime:
        return parse_time(value)
    if kind is float and isinstance(value, int):
        return float(value)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, dict):
            raise ValueError(f"{kind.__name__} is {str(value)[:60]!r}")
        hints = _hints(kind)
        known = {f.name: f.name.rstrip("_") for f in dataclasses.fields(kind)}
        return kind(**{name: decode(hints[name], value[wire]) for name, wire in known.items() if wire in value})
    return value


def problem(document: Any, status: int, retry_after: float = 0.0) -> errors.MnemeError | None:
    """The error that a problem document tells of; None if it is none of a node. What stands in a stream
    has the status 0, and need not name its own.
    """
    if not isinstance(document, dict) or not isinstance(document.get("code"), str) or not document["code"]:
        return None
    if status and (not document.get("type") or document.get("status") != status):  # others have a code, too
        return None
    kind = errors.BY_CODE.get(document["code"], errors.InternalError)
    message = document.get("detail") or document.get("title") or document["code"]
    return kind(str(message), str(document.get("hint", "")), status=status, retry_after=retry_after)
