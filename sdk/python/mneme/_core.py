"""What the clients do without input and output: addresses, requests, and what follows from an answer.

The one rule of retries: nothing is sent again that could happen twice. Reads may be sent again; captures
and revisions carry an id under which they count once; whatever else has changed something and lost its
answer is ``OutcomeUnknown``.
"""

from __future__ import annotations

import json
import secrets
import ssl
import threading
from dataclasses import dataclass, field
from typing import Any, Generator, Iterable, Sequence, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from . import _wire, errors
from ._operations import OPERATIONS
from ._sse import Message
from .types import Event

DEFAULT_ADDRESS = "http://127.0.0.1:8787"
DEFAULT_PORT = 8787

T = TypeVar("T")

_JSON = "application/json"
_FOREIGN = "is that a memnode? it did not answer like one; a proxy, or a network that asks to sign in first, may stand in between"


@dataclass(frozen=True)
class Address:
    """Where one node listens."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"


def parse_address(text: str) -> Address:
    """Reads "host:port" or an http or https URL; tls means https, and a /v1 at the end is left out."""
    full = text.strip() or DEFAULT_ADDRESS
    if full.startswith(":"):
        full = "127.0.0.1" + full
    bare = "://" not in full
    try:
        parts = urlsplit(("http://" if bare else "") + full)
        port = parts.port
    except ValueError as error:
        raise errors.Invalid(f"{text!r} is not an address", f"an address looks like {DEFAULT_ADDRESS}") from error
    scheme = parts.scheme
    if scheme == "tls":
        scheme, bare = "https", True
    if scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise errors.Invalid(f"{text!r} is not an address", f"an address looks like {DEFAULT_ADDRESS}")
    if port is None:
        port = DEFAULT_PORT if bare else {"http": 80, "https": 443}[scheme]
    prefix = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return Address(scheme, parts.hostname, port, prefix)


def parse_addresses(addresses: str | Iterable[str]) -> list[Address]:
    """Reads one address, several with commas between, or a sequence of them."""
    texts = addresses.split(",") if isinstance(addresses, str) else list(addresses)
    if not texts or len(texts) > 1 and not all(text.strip() for text in texts):
        raise errors.Invalid("an address is empty", f"several addresses look like {DEFAULT_ADDRESS},http://10.0.0.7:8787")
    return [parse_address(text) for text in texts]


def ssl_context(ca_file: str | None, cert_file: str | None, key_file: str | None) -> ssl.SSLContext:
    """How nodes with https addresses are met: by the system's authorities, or by the file's alone."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
        if cert_file is not None or key_file is not None:
            if cert_file is None or key_file is None:
                raise errors.Invalid("a certificate without its key is given, or the reverse", "name both files, or none")
            context.load_cert_chain(cert_file, key_file)
    except OSError as error:  # ssl.SSLError is one
        raise errors.Invalid(f"read certificates: {error}", "the files hold an authority, a certificate and its key in PEM") from error
    return context


@dataclass
class Call:
    """One request, whichever node it goes to."""

    operation: str
    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    repeat: bool = False  # it may be sent twice
    sure: bool = False  # "unavailable" says that it has not happened
    accept: str = _JSON

    @property
    def write(self) -> bool:
        """Whether it changes something."""
        method, path, *_ = OPERATIONS[self.operation]
        return method != "GET" and not path.endswith("/search")


@dataclass(frozen=True)
class Request:
    """One request to one node."""

    address: Address
    method: str
    target: str
    headers: dict[str, str]
    body: bytes | None
    stream: str  # the media type of an answer that is read as it comes, "" of one that is read whole


@dataclass
class Reply:
    """What a node answered. A stream of a 2xx answer is still to be read."""

    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes = b""
    stream: Any = None


@dataclass
class Failure:
    """Why there is no answer; sent says that the node may have seen the request, foreign that what answered is
    no memnode.
    """

    error: Exception
    sent: bool
    foreign: bool = False


class Nodes:
    """The addresses of the nodes, of which one is asked until it does not take a call."""

    def __init__(self, addresses: list[Address]) -> None:
        self.list = addresses
        self._turn = 0

    def now(self) -> tuple[Address, int]:
        """The node to ask, and its turn."""
        turn = self._turn
        return self.list[turn % len(self.list)], turn

    def leave(self, turn: int) -> None:
        """Goes on with the next node, unless another call has done so since the turn."""
        if self._turn == turn and len(self.list) > 1:
            self._turn = turn + 1


class Core:
    """What both clients are made of."""

    def __init__(
        self,
        addresses: str | Sequence[str] = DEFAULT_ADDRESS,
        *,
        token: str | None = None,
        agent: str | None = None,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        timeout: float = 60.0,
        user_agent: str = "mneme-python",
    ) -> None:
        if not isinstance(timeout, (int, float)) or not 0 < timeout <= threading.TIMEOUT_MAX:
            raise errors.Invalid(f"timeout is {timeout!r}, it must be a number of seconds above 0")
        self._nodes = Nodes(parse_addresses(addresses))
        self._token = token
        self._agent = agent
        self._user_agent = user_agent
        self._timeout = timeout
        secure = any(address.scheme == "https" for address in self._nodes.list)
        self._ssl = ssl_context(ca_file, cert_file, key_file) if secure else None

    @property
    def address(self) -> str:
        """The address that the client talks to; of several, the present one."""
        return str(self._nodes.now()[0])

    def _reads(self, as_: str | None, at_least: str | None, consistency: str | None) -> dict[str, Any]:
        return {"as": as_ or self._agent, "at_least": at_least, "consistency": consistency}

    def _acts(self, as_: str | None = None, if_version: int | None = None, key: str | None = None) -> dict[str, str]:
        headers = {"Mneme-Agent": as_ or self._agent or "", "If-Match": str(if_version or ""), "Idempotency-Key": key or ""}
        return {name: value for name, value in headers.items() if value}

    def _request(self, call: Call, address: Address) -> Request:
        operation = OPERATIONS[call.operation]
        path = operation.path
        for name, value in call.path.items():
            if not isinstance(value, str) or not value:
                raise errors.Invalid(f"{value!r} is not {'a namespace' if name == 'ns' else 'an id'}")
            segment = value.replace(".", "%2E") if value in (".", "..") else quote(value, safe="")
            path = path.replace("{" + name + "}", segment)
        pairs: list[tuple[str, str]] = []
        for name, value in call.query.items():
            if name not in operation.query:
                raise errors.Invalid(f"{call.operation} takes no {name}")
            pairs.extend((name, text) for text in _texts(name, value))
        target = address.prefix + path + ("?" + urlencode(pairs) if pairs else "")
        headers = {"Accept": f"{call.accept}, application/problem+json", "User-Agent": self._user_agent, **call.headers}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        body = None
        if call.body is not None:
            try:
                body = json.dumps(_wire.encode(call.body), ensure_ascii=False, allow_nan=False).encode()
            except (TypeError, ValueError) as error:
                raise errors.Invalid(f"the request cannot be written as JSON: {error}") from error
            headers["Content-Type"] = "application/json"
        for name, value in headers.items():
            if not (value.isascii() and value.isprintable()):
                raise errors.Invalid(f"what is sent as {name} may hold visible ASCII characters only")
        return Request(address, operation.method, target, headers, body, "" if call.accept == _JSON else call.accept)

    def _send(self, call: Call) -> Generator[Request, Reply | Failure, Reply]:
        """Asks one node after the other for as long as that is safe and makes sense."""
        unreached: list[errors.MnemeError] = []
        said: errors.MnemeError | None = None  # counts more than that a node was not reached
        for _ in self._nodes.list:
            address, turn = self._nodes.now()
            answer = yield self._request(call, address)
            if isinstance(answer, Reply):
                if 200 <= answer.status < 300:
                    return answer
                error, own = _refusal(address, answer)
                if call.write:
                    goes_on = isinstance(error, errors.Unavailable) and own and (call.repeat or call.sure)
                else:
                    goes_on = isinstance(error, (errors.Unavailable, errors.StalePosition))
                said = error
            elif answer.sent:
                said = error = lost(call, address, answer.error, foreign=answer.foreign)
                goes_on = not call.write
            else:
                error = _unreachable(address, answer.error)
                unreached.append(error)
                goes_on = True
            if goes_on or isinstance(answer, Failure):
                self._nodes.leave(turn)
            if not goes_on:
                raise error
        if said is not None:
            raise said
        if len(unreached) == 1:
            raise unreached[0]
        message = "; ".join(error.message for error in unreached)
        raise errors.Unavailable(message, "is any of these nodes running? start one, or name other addresses")

    def _flow(self, call: Call) -> Generator[Request, Reply | Failure, Reply]:
        """Sends a call that may be repeated again where its answer was lost."""
        try:
            return (yield from self._send(call))
        except errors.OutcomeUnknown as error:
            if not call.repeat:
                raise
            first = error
        for _ in range(max(1, len(self._nodes.list) - 1)):
            try:
                return (yield from self._send(call))
            except errors.MnemeError as error:
                if not isinstance(error, errors.TRANSIENT) and not error.foreign:
                    raise  # else it says nothing about the first attempt
        raise first

    def _result(self, kind: type[T], reply: Reply, call: Call) -> T:
        """What a call answered: JSON that has most of the names that a memnode's always has. One of another version
        need not know each that may be empty.
        """
        try:
            document = json.loads(reply.body)
            names = OPERATIONS[call.operation].answer
            if not isinstance(document, dict) or 2 * len(document.keys() & set(names)) <= len(names):
                raise ValueError("it is the JSON of something else")
            result: T = _wire.decode(kind, document)
            return result
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            address = self._nodes.now()[0]
            if call.write:
                raise lost(call, address, error, foreign=True) from error
            raise errors.InternalError(f"the answer of {address} is not what it should be: {error}", "is that a memnode, of a version that this client knows?", foreign=True) from error


def _texts(name: str, value: Any) -> list[str]:
    """A parameter's values as they stand in a URL; none for what was not given."""
    if value is None or value == "":
        return []
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if name == "fields" and not isinstance(value, str):
        return [",".join(value)] if value else []
    if isinstance(value, (list, tuple, set, frozenset)):
        return [str(_wire.encode(v)) for v in value]
    return [str(_wire.encode(value))]


_CODES: dict[int, type[errors.MnemeError]] = {
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Gone,
    412: errors.Conflict,
    413: errors.TooLarge,
    429: errors.Overloaded,
    502: errors.Unavailable,
    503: errors.Unavailable,
    504: errors.TimedOut,
    507: errors.NoSpace,
}


def _refusal(address: Address, reply: Reply) -> tuple[errors.MnemeError, bool]:
    """The error that an answer tells of, and whether it is a memnode's own."""
    wait = reply.headers.get("retry-after", "")
    retry_after = float(min(int(wait), 3600)) if wait.isdecimal() else 0.0
    if 300 <= reply.status < 400:
        to = reply.headers.get("location", "")[:200]
        return errors.Unavailable(f"{address} answered {reply.status}: it leads to {to!r} and is not followed", "a memnode redirects nobody; name the address of the node itself", status=reply.status, foreign=True), False
    try:
        error = _wire.problem(json.loads(reply.body), reply.status, retry_after)
    except ValueError:
        error = None
    if error is not None:
        return error, True
    if reply.status == 400 and reply.body.startswith(b"Client sent an HTTP request to an HTTPS server"):
        return errors.Unavailable(f"the node at {address} speaks TLS, and was asked in clear", "write https:// in the address; ca_file names the authority if the system does not know it", status=400), False
    kind = _CODES.get(reply.status, errors.Invalid if reply.status < 500 else errors.InternalError)
    return kind(f"{address} answered {reply.status}", _FOREIGN, status=reply.status, retry_after=retry_after, foreign=True), False


def _unreachable(address: Address, error: Exception) -> errors.MnemeError:
    if isinstance(error, errors.MnemeError):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        return errors.Unavailable(f"the certificate of the node at {address} is not trusted: {error.verify_message}", "ca_file names the file with its authority; the certificate has to be for the address's name")
    if isinstance(error, ssl.SSLError):
        return errors.Unavailable(f"the node at {address} did not begin TLS: {error}", "write http:// in the address if it speaks none; cert_file and key_file are the client's own certificate if it asks for one")
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return errors.Unavailable(f"cannot reach a node at {address}: {said}", f"is `memnode` running at {address.host}:{address.port}? start it, or name another address")


def foreign_stream(request: Request, headers: dict[str, str]) -> Failure | None:
    """Why an answer that was to be read as it comes is no memnode's; None where it may be one's.

    What a memnode sends so begins with its media type, also where nothing follows: by that an empty export is told
    from the empty answer of a portal.
    """
    sent = headers.get("content-type", "")
    if sent.partition(";")[0].strip().lower() == request.stream:
        return None
    error = ValueError(f"what answered is no memnode: it sent {sent[:60] or 'nothing'} where a memnode sends {request.stream}")
    return Failure(error, sent=True, foreign=True)


def lost(call: Call, address: Address, error: Exception, *, foreign: bool = False) -> errors.MnemeError:
    """The error of a request that may have arrived."""
    said = str(error) or type(error).__name__
    if foreign and not call.write:
        return errors.Unavailable(f"asked {address}: {said}", _FOREIGN, foreign=True)
    if not call.write:
        kind = errors.TimedOut if isinstance(error, TimeoutError) else errors.Unavailable
        return kind(f"no answer from {address}: {said}", "is `memnode` still running there?")
    hint = "look whether it happened before sending it again"
    if call.repeat:
        key = call.headers.get("Idempotency-Key") or call.body and getattr(call.body, "id", "")
        hint = f"it may be sent again with the same id, {key}"
    return errors.OutcomeUnknown(f"the answer from {address} was lost, the write may or may not have happened: {said}", hint, foreign=foreign)


def new_id() -> str:
    """A new idempotency key: 128 random bits."""
    return secrets.token_hex(16)


class Feed:
    """Where one feed stands, and what to do when its connection breaks."""

    PAUSE = 0.25
    ATTEMPTS = 10

    def __init__(self, position: str | None) -> None:
        self.position = position
        self.seen = False  # the position came from the stream
        self.connected = False
        self.failures = 0

    def take(self, message: Message) -> Event | None:
        """The event of a message; None if it brings none that is new."""
        if message.name == "error":
            error = _wire.problem(_document(message), 0)
            if error is not None:
                raise error
        if message.data and message.id and self.seen and message.id == self.position:
            return None
        event = None
        if message.data:
            try:
                event = _wire.decode(Event, _document(message))
            except (ValueError, TypeError) as error:
                raise errors.InternalError(f"event {message.id}: not a CloudEvent: {error}") from error
            self.failures = 0
        if message.id:
            self.position, self.seen = message.id, True
        return event

    def pause(self, error: errors.MnemeError) -> float:
        """How long to wait before the next attempt; raises the error if there is to be none."""
        self.failures += 1
        decides = not error.foreign or isinstance(error, errors.Unauthenticated)
        if not self.connected or self.failures >= self.ATTEMPTS or decides and not isinstance(error, errors.TRANSIENT):
            raise error
        return float(max(self.PAUSE * 2 ** min(self.failures - 1, 5), error.retry_after))


def _document(message: Message) -> Any:
    try:
        return json.loads(message.data)
    except ValueError as error:
        raise errors.InternalError(f"event {message.id}: not JSON: {error}") from error
