"""Walks over every operation alike: credentials, methods, media types, bodies, other origins."""

from typing import Any, Final, NamedTuple

from tests.replay.walk import FORM, JSON, Walk, walk

V1: Final = "/api/public/v1"
TABLES: Final = (
    "leads",
    "email_send_log",
    "email_send_state",
    "email_unsubscribe_tokens",
    "suppressed_emails",
)


class Operation(NamedTuple):
    """An operation, as far as the sweep needs it."""

    method: str
    path: str
    credential: str = ""
    """`key`, `token`, `optional` or nothing."""
    body: str = ""
    """The media type of its body, if it takes one."""


READS: Final = (
    Operation("GET", f"{V1}/posts", "key"),
    Operation("GET", f"{V1}/posts/first-edge", "key"),
    Operation("GET", f"{V1}/leads", "key"),
    Operation("GET", f"{V1}/search?q=edge"),
    Operation("GET", "/search?q=edge"),
    Operation("GET", "/api/public/ping"),
    Operation("GET", f"{V1}/readiness"),
    Operation("GET", f"{V1}/"),
    Operation("GET", f"{V1}/openapi.json"),
    Operation("GET", "/.well-known/api-catalog"),
    Operation("GET", "/.well-known/oauth-authorization-server"),
    Operation("GET", "/.well-known/oauth-protected-resource"),
    Operation("GET", "/.well-known/jwks.json"),
    Operation("GET", "/api/public/oauth/authorize"),
    Operation("GET", "/api/public/access-requests"),
    Operation("GET", "/unsubscribe"),
    Operation("GET", "/api/public/mcp/server-card"),
    Operation("GET", "/.well-known/ai-catalog.json"),
)
POSTS: Final = (
    Operation("POST", f"{V1}/leads", "optional", JSON),
    Operation("POST", f"{V1}/analyze", "", JSON),
    Operation("POST", "/api/public/oauth/token", "", FORM),
    Operation("POST", "/api/public/oauth/revoke", "", FORM),
    Operation("POST", "/api/public/oauth/register", "", JSON),
    Operation("POST", "/api/public/oauth/authorize", "", FORM),
    Operation("POST", "/api/public/access-requests", "", JSON),
    Operation("POST", "/api/public/access-requests/claim", "", JSON),
    Operation("POST", "/unsubscribe"),
    Operation("POST", "/api/public/hooks/email", "", JSON),
    Operation("POST", "/api/public/mcp", "token", JSON),
    Operation("POST", "/contact/", "", FORM),
    Operation("POST", "/contact/access/", "", FORM),
    Operation("POST", "/contact/access/claim/", "", FORM),
)
ROWS: Final = (
    *(Operation("GET", f"{V1}/admin/{table}", "key") for table in TABLES),
    *(
        Operation(method, f"{V1}/admin/{table}", "key", JSON)
        for table in TABLES
        for method in ("POST", "PATCH", "DELETE")
    ),
    *(
        Operation(method, f"{V1}/admin/keys", "key")
        for method in ("GET", "POST", "PATCH", "DELETE")
    ),
)
CREDENTIALS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"key": "revoked"},
    {"key": "fe_sk_made-up"},
    {"key": "no admin"},
    {"key": "reading"},
    {"key": "writing"},
    {"key": "one table"},
    {"key": "token"},
    {"bearer": "posts"},
    {"bearer": "token"},
    {"bearer": "bare token"},
    {"key": "all", "bearer": "posts"},
    {"headers": {"Authorization": "Basic YTpi"}},
    {"headers": {"Authorization": "Bearer"}},
)
BROKEN: Final = (b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"a": NaN}', b"{}", b'{"a":1}')
KINDS: Final = ("text/plain", f"{JSON}; charset=latin-1", "multipart/form-data; boundary=x", "")


def credentials(w: Walk, operations: tuple[Operation, ...]) -> None:
    """Show each kind of credential to each operation."""
    for operation in operations:
        given: dict[str, Any] = {"json_body": {}} if operation.body == JSON else {}
        for credential in CREDENTIALS if operation.credential else CREDENTIALS[:2]:
            w.ask(operation.method, operation.path, **given, **credential)


@walk("sweep-credentials", fresh=False)
def credentials_of_all(w: Walk) -> None:
    """Show credentials to what is no table."""
    credentials(w, (*READS, *POSTS))


@walk("sweep-credentials-of-tables", fresh=False)
def credentials_of_tables(w: Walk) -> None:
    """Show credentials to the tables: all to the first and to one that is none."""
    few = [each for each in ROWS if each.path.endswith(("leads", "keys"))]
    credentials(w, tuple(few))
    for operation in ROWS:
        if operation not in few:
            credentials(w, (operation._replace(credential=""),))


@walk("sweep-methods", fresh=False)
def methods(w: Walk) -> None:
    """Use each other method, and ask as a browser does before a script of another origin."""
    for path in dict.fromkeys(
        operation.path for operation in (*READS, *POSTS, *ROWS[:2], ROWS[-1])
    ):
        for method in ("PUT", "OPTIONS", "HEAD", "DELETE"):
            w.ask(method, path, headers={"Origin": "https://other.example"})
        asked = {
            "Origin": "https://other.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "x-api-key, content-type",
        }
        w.ask("OPTIONS", path, headers=asked)


@walk("sweep-bodies", fresh=False)
def bodies(w: Walk) -> None:
    """Send bodies that are none, in wrong types, in codings, and too long ones."""
    for operation in (*POSTS, *ROWS[5:8]):
        bearer = "token" if operation.credential == "token" else ""
        key = "" if bearer or not operation.credential else "all"
        credential: dict[str, Any] = {"key": key, "bearer": bearer}
        kind = operation.body or JSON
        for body in BROKEN:
            w.ask(
                operation.method,
                operation.path,
                **credential,
                body=body,
                headers={"Content-Type": kind},
            )
        for wrong in KINDS:
            headers = {"Content-Type": wrong} if wrong else {}
            w.ask(operation.method, operation.path, **credential, body=b"{}", headers=headers)
        for coding in ("gzip", "rot13", "br", "identity"):
            headers = {"Content-Type": kind, "Content-Encoding": coding}
            w.ask(operation.method, operation.path, **credential, body=b"{}", headers=headers)
        long = {"Content-Type": kind, "Content-Length": "9999999"}
        w.ask(operation.method, operation.path, **credential, headers=long)
        w.ask(
            operation.method,
            operation.path,
            **credential,
            body=b"{}",
            headers={"Content-Type": kind, "Expect": "the-worst"},
        )
        w.ask(operation.method, operation.path, **credential)
