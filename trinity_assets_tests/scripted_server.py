"""A real HTTP server that speaks the OpenAI chat protocol and misbehaves on request.

A script belongs to a model name: a sequence of behaviours, one per request, the last one repeated for ever. A model
without a script answers with ``answer(messages)``, the server's function of the conversation. Every request is kept
with its time and body, so that a test can say how often, when and what a worker was asked::

    with ScriptedServer(lambda messages: "4") as server:
        server.script("flaky", status(429, retry_after="1"), answer("four"))
        server.script("dies", *[answer("ok")] * 3, status(401))
        ...
        assert server.count("flaky") == 2
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class Received:
    """One request as it arrived: the monotonic time, the decoded JSON body and the headers (names in lower case)."""

    at: float
    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def messages(self) -> Messages:
        return self.body["messages"]


@dataclass(frozen=True)
class Reply:
    """What goes back: bytes as they are, how long to wait before and between them, and how the connection ends.

    ``drip_s`` sends one byte per that many seconds; ``announce`` overrides the announced length (a larger one is a
    truncated body); ``reset`` drops the connection with a TCP reset instead of answering.
    """

    body: bytes = b""
    code: int = 200
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0
    drip_s: float = 0.0
    announce: int | None = None
    reset: bool = False


Behaviour = Callable[[Received], Reply]


def completion(
    text: str | None,
    *,
    model: str = "scripted",
    finish: str | None = "stop",
    usage: tuple[int, int] | None = (10, 5),
    message: Mapping[str, Any] | None = None,
    choice: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A chat completion as JSON; ``message`` and ``choice`` add or replace fields at their level."""
    said = {"role": "assistant", "content": text, **(message or {})}
    body: dict[str, Any] = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "finish_reason": finish, "message": said, **(choice or {})}],
    }
    if usage:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return body


def answer(text: str | None, *, delay_s: float = 0.0, **fields: Any) -> Behaviour:
    """A good answer, or with ``fields`` of :func:`completion` one that only looks good."""

    def reply(received: Received) -> Reply:
        body = completion(text, **{"model": received.body["model"], **fields})
        return Reply(json.dumps(body).encode(), delay_s=delay_s)

    return reply


def status(
    code: int,
    message: str = "scripted failure",
    *,
    error: Mapping[str, Any] | None = None,
    retry_after: str | None = None,
) -> Behaviour:
    """An HTTP error with an OpenAI error body."""
    body = json.dumps({"error": {"message": message, "type": "scripted", "code": None, **(error or {})}}).encode()
    headers = (("Retry-After", retry_after),) if retry_after is not None else ()
    return lambda received: Reply(body, code=code, headers=headers)


def raw(body: bytes, **fields: Any) -> Behaviour:
    """Any bytes, with the fields of :class:`Reply`."""
    return lambda received: Reply(body, **fields)


def json_body(value: Any) -> Behaviour:
    """A 200 with any JSON value."""
    return raw(json.dumps(value).encode())


def html() -> Behaviour:
    """A gateway's page with status 200."""
    return raw(b"<html><body>Bad gateway</body></html>", content_type="text/html")


def error_in_200(message: str = "upstream is overloaded", code: int = 502) -> Behaviour:
    """A 200 whose body is an error."""
    return json_body({"error": {"message": message, "code": code}})


def no_choices() -> Behaviour:
    """A completion without any choice."""
    return lambda received: Reply(json.dumps({**completion("", model=received.body["model"]), "choices": []}).encode())


def mid_generation_error(text: str = "The answer is") -> Behaviour:
    """A completion that broke off upstream: the error stands inside the choice, beside a harmless finish reason."""
    return answer(text, finish="error", choice={"error": {"message": "upstream died", "code": 502}})


def stall(seconds: float) -> Behaviour:
    """Nothing for ``seconds``, then a good answer."""
    return answer("late", delay_s=seconds)


def drip(seconds_per_byte: float) -> Behaviour:
    """A good answer, one byte at a time: no read ever times out, the call does."""
    return lambda received: Reply(json.dumps(completion("slow")).encode(), drip_s=seconds_per_byte)


def reset() -> Behaviour:
    """The connection is reset before a byte came back."""
    return lambda received: Reply(reset=True)


def truncated_body() -> Behaviour:
    """Half a completion, then the connection closes before the announced length."""
    body = json.dumps(completion("cut")).encode()
    return lambda received: Reply(body[: len(body) // 2], announce=len(body))


@contextlib.contextmanager
def refusing() -> Iterator[str]:
    """The base URL of a provider that is down: its port is taken for the block and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


class ScriptedServer:
    """Serves ``url`` (an OpenAI base URL) on a free local port while its ``with`` block lasts.

    ``default`` makes the text for models without a script; ``delay_s`` is how long such an answer takes.
    """

    def __init__(self, default: Callable[[Messages], str] = lambda messages: "ok", *, delay_s: float = 0.0) -> None:
        self.default = default
        self.delay_s = delay_s
        self._scripts: dict[str, list[Behaviour]] = {}
        self._received: dict[str, list[Received]] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        """The base URL, with ``/v1``."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def script(self, model: str, *behaviours: Behaviour) -> None:
        """Give ``model`` a script from its next request on; the last behaviour repeats."""
        with self._lock:
            self._scripts[model] = list(behaviours)

    def received(self, model: str | None = None) -> list[Received]:
        """The requests so far, of one model or of all, in order of arrival."""
        with self._lock:
            chosen = self._received.values() if model is None else [self._received.get(model, [])]
            return sorted((one for requests in chosen for one in requests), key=lambda one: one.at)

    def count(self, model: str | None = None) -> int:
        """How many requests arrived, for one model or for all."""
        return len(self.received(model))

    def times(self, model: str) -> list[float]:
        """When the model's requests arrived (monotonic seconds)."""
        return [one.at for one in self.received(model)]

    def reply_to(self, received: Received) -> Reply:
        """Record a request and take the next behaviour of its model's script."""
        model = received.body["model"]
        with self._lock:
            self._received.setdefault(model, []).append(received)
            script = self._scripts.get(model)
            behaviour = script[0] if script else None
            if script and len(script) > 1:
                script.pop(0)
        if behaviour is None:
            behaviour = answer(self.default(received.messages), delay_s=self.delay_s)
        return behaviour(received)

    def pause(self, seconds: float) -> bool:
        """Wait, but not past the server's end; true when it is still serving."""
        return not self._closing.wait(seconds) if seconds else True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the play."""


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = server.reply_to(Received(time.monotonic(), body, headers))
            if not server.pause(reply.delay_s):
                return
            if reply.reset:
                self._reset()
                return
            with contextlib.suppress(ConnectionError):
                for piece in _pieces(self._head(reply), reply):
                    self.wfile.write(piece)
                    if reply.drip_s and not server.pause(reply.drip_s):
                        break
            self.close_connection = reply.announce is not None or bool(reply.drip_s)

        def _head(self, reply: Reply) -> bytes:
            length = len(reply.body) if reply.announce is None else reply.announce
            lines = [f"HTTP/1.1 {reply.code} Scripted", f"Content-Type: {reply.content_type}"]
            lines += [f"Content-Length: {length}", *(f"{name}: {value}" for name, value in reply.headers)]
            return ("\r\n".join(lines) + "\r\n\r\n").encode()

        def _reset(self) -> None:
            """Closing with a zero linger time sends RST instead of FIN."""
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet: the requests are kept in ``received``."""

    return Handler


def _pieces(head: bytes, reply: Reply) -> Iterator[bytes]:
    """Head and body in one write (a second small write would wait for Nagle's algorithm), or byte by byte."""
    if not reply.drip_s:
        yield head + reply.body
        return
    yield head
    for index in range(len(reply.body)):
        yield reply.body[index : index + 1]
