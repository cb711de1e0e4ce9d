"""A walk: requests in an order, by one client, to one edge; and the list of all walks."""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from tests.edge.edge_process import Installation
from tests.replay.client import Answer, Client, Headers
from tests.replay.names import Names
from tests.replay.stage import Stage
from tests.replay.telling import Json, Teller, shorten, tell_digest

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
_NOTHING: Final = object()


@dataclass(frozen=True)
class Plan:
    """One walk as it is declared."""

    name: str
    take: Callable[["Walk"], None]
    kind: str = "plain"
    """The kind of edge that it needs."""
    fresh: bool = True
    """True if it needs an edge of its own: it writes, or it counts."""
    slow: bool = False
    """True if it waits for long, so that it is taken beside the others."""


PLANS: dict[str, Plan] = {}


def walk(
    name: str, *, kind: str = "plain", fresh: bool = True, slow: bool = False
) -> Callable[[Callable[["Walk"], None]], Callable[["Walk"], None]]:
    """Declare a walk under a name that no other one has."""

    def declare(take: Callable[[Walk], None]) -> Callable[[Walk], None]:
        assert name not in PLANS, name
        PLANS[name] = Plan(name, take, kind, fresh, slow)
        return take

    return declare


class Walk:
    """Sends the requests of one walk, and keeps what was sent and answered."""

    def __init__(self, stage: Stage, installed: Installation) -> None:
        port = installed.settings["PORT"]
        names = Names({**stage.fixed_names(), f"127.0.0.1:{port}": "127.0.0.1:<port>"})
        self.stage = stage
        self.host = "journal.test"
        self.entries: list[Json] = []
        self._installed = installed
        self._client = Client(int(port))
        self._names = names
        self._teller = Teller(names, stage.site)

    def ask(  # noqa: PLR0913  the parts of a request
        self,
        method: str,
        target: str,
        *,
        key: str = "",
        bearer: str = "",
        headers: Mapping[str, str] | Headers = (),
        json_body: Any = _NOTHING,
        form: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        body: bytes | None = None,
        events: int = 0,
    ) -> Answer:
        """Send a request and return its answer; `key` and `bearer` name a secret of the stage."""
        sent = list(headers.items() if isinstance(headers, Mapping) else headers)
        if key:
            sent.append(("X-API-Key", self.secret(key)))
        if bearer:
            sent.append(("Authorization", f"Bearer {self.secret(bearer)}"))
        given = {name.lower() for name, _ in sent}
        if json_body is not _NOTHING:
            body = json.dumps(json_body).encode()
            sent += [("Content-Type", JSON)] * ("content-type" not in given)
        if form is not None:
            body = urlencode(list(form.items() if isinstance(form, Mapping) else form)).encode()
            sent += [("Content-Type", FORM)] * ("content-type" not in given)
        lines = [f"{name}: {value}" for name, value in sent]
        length = []
        if body is not None and not given & {"content-length", "transfer-encoding"}:
            length = [f"Content-Length: {len(body)}"]
        host = [] if "host" in given else [f"Host: {self.host}"]
        head = "\r\n".join([f"{method} {target} HTTP/1.1", *host, *lines, *length, "", ""])
        raw = head.encode("latin-1") + (body or b"")
        entry: Json = {"ask": self._names.apply(f"{method} {target}")}
        if lines:
            entry["with"] = [self._names.apply(self._tell_secrets(line)) for line in lines]
        if body:
            entry["sent"] = self._tell_sent(body)
        answer = self._exchange(raw, method, events)
        path = target.partition("?")[0]
        self.entries.append({**entry, **self._teller.tell(method, answer, path)})
        return answer

    def get(self, target: str, **more: Any) -> Answer:
        """Send a GET."""
        return self.ask("GET", target, **more)

    def post(self, target: str, json_body: Any = _NOTHING, **more: Any) -> Answer:
        """Send a POST."""
        return self.ask("POST", target, json_body=json_body, **more)

    def raw(self, data: bytes, *, method: str = "GET", answers: int = 1) -> None:
        """Send bytes on a new connection, and keep so many answers."""
        self._client.close()
        self._client.send(data)
        masked = shorten(self._names.apply(data.decode("latin-1")))
        for number in range(answers):
            entry: Json = {"bytes": masked} if not number else {"bytes": "(the same)"}
            try:
                answer = self._client.receive(method)
                self.entries.append({**entry, **self._teller.tell(method, answer)})
            except (EOFError, ConnectionError):
                self.entries.append({**entry, "closed": True})
                return
            if answer.closed:
                break
        self._client.close()

    @property
    def folder(self) -> Path:
        """The folder that the edge runs in."""
        return self._installed.folder

    def run(self, *words: str) -> tuple[int, str, str]:
        """Run a command on the store that is served; return code, output and complaints."""
        return self._installed.run(*words)

    def command(self, *words: str) -> str:
        """Run a command, and keep what it prints."""
        code, said, complained = self.run(*words)
        masked = self._names.apply(said)
        entry: Json = {"command": self._names.apply(" ".join(words)), "status": code}
        entry |= tell_digest("", masked)
        if code:
            entry["stderr"] = self._names.apply(complained)
        self.entries.append(entry)
        return said

    def audit(self) -> None:
        """Keep what the audit log has, in no order: rows of one transaction have none."""
        rows = json.loads(self.run("audit", "--json")[1])
        for row in rows:
            row.pop("id")
        lines = [self._names.known(json.dumps({**row, "at": ""}, sort_keys=True)) for row in rows]
        summary = tell_digest("", json.dumps(sorted(lines)))
        self.entries.append({"command": "audit", "status": 0, **summary})

    def know(self, kind: str, value: str) -> str:
        """Return a value that differs from play to play, having named it."""
        self._names.learn(kind, value)
        return value

    def secret(self, name: str) -> str:
        """Return a secret of the stage by its name; anything else is one itself."""
        return self.stage.secrets.get(name, name)

    def basic(self, client: str, secret: str = "") -> tuple[str, str]:
        """Return the header by which a client of the stage authenticates (RFC 7617)."""
        known = self.stage.clients.get(client, client)
        pair = f"{known}:{secret or self.secret(f'{client} secret')}"
        return "Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _exchange(self, raw: bytes, method: str, events: int) -> Answer:
        """Return the answer to a request; on a new connection where the old one was closed."""
        try:
            self._client.send(raw)
            return self._client.receive(method, events)
        except (EOFError, ConnectionError):
            self._client.close()
            self._client.send(raw)
            return self._client.receive(method, events)

    def _tell_secrets(self, line: str) -> str:
        """Return a header line in which the pair of HTTP Basic can be read."""
        name, _, value = line.partition("Basic ")
        if name != "Authorization: ":
            return line
        try:
            return f"{name}Basic ({base64.b64decode(value).decode()})"
        except ValueError:
            return line

    def _tell_sent(self, body: bytes) -> Any:
        text = self._names.apply(body.decode("utf-8", "backslashreplace"))
        return shorten(text)
