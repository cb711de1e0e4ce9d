import asyncio
import gzip
import json
import zlib
from typing import Any

import brotli
import pytest

from edge_api.http import body as body_module
from edge_api.http import dispatch as app_module
from edge_api.http import server as server_module
from edge_api.http.response import Request, assign_request_id
from edge_api.leads.service import Leads
from tests.edge.raw_http import Answer, connect
from tests.patience import patience

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

LEADS = "/api/public/v1/leads"
LEAD = {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": "hello"}
GOOD = json.dumps(LEAD).encode()
JSON = b"Content-Type: application/json\r\n"
GZIP = JSON + b"Content-Encoding: gzip\r\n"
DEFLATE = b"Content-Encoding: deflate\r\n"
BROTLI = b"Content-Encoding: br\r\n"
CHUNKED = JSON + b"Transfer-Encoding: chunked\r\n"
NOT_HTTP = "The request is not valid HTTP"
TOO_LONG = "The request line or a header is too long"
MEDIA_TYPE = "Send the body as application/json in UTF-8"
EMPTY = "The body is empty: send a JSON value"
NOT_UTF8 = "The body is not in UTF-8"
LARGE = "The body is larger than 64 KiB"
BROKEN = "The body's transfer or content coding is broken"
TWO = "Two different credentials were sent: send one"


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut slow bodies off early."""
    monkeypatch.setattr(body_module, "BODY_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(server_module, "LINGER_SECONDS", 0.1)


def get(*lines: bytes, target: bytes = b"/api/public/ping") -> bytes:
    """Return a GET with further header lines."""
    head = b"".join(line + b"\r\n" for line in lines)
    return b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n"


def head_of_post(headers: bytes, version: bytes = b"1.1") -> bytes:
    """Return the head of a POST of a lead."""
    start = b"POST " + LEADS.encode() + b" HTTP/" + version + b"\r\nHost: x\r\n"
    return start + headers + b"\r\n"


def post(body: bytes, headers: bytes = JSON) -> bytes:
    """Return a POST of a lead with this body."""
    return head_of_post(headers + b"Content-Length: %d\r\n" % len(body)) + body


def chunk(body: bytes) -> bytes:
    """Return a body in one chunk."""
    return b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"


def changed(name: bytes) -> bytes:
    """Return the good lead with this JSON as its name."""
    return GOOD.replace(b'"Ann"', name)


async def ask(edge: Any, raw: bytes) -> Answer:
    """Return the answer; the connection is closed as announced, or takes another request."""
    async with connect(edge.url) as connection:
        answer = await connection.ask(raw)
        assert await (connection.is_closed() if answer.closes else connection.is_reusable())
        return answer


NOT_MESSAGES = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/3.0": b"GET / HTTP/3.0\r\nHost: x\r\n\r\n",
    "a method with a sign": b"G@T / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a method without a target": b"FROB\r\n\r\n",
    "a method of another protocol": b"FROB / SMTP/1.1\r\nHost: x\r\n\r\n",
    "no path": b"GET example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    "no port": b"GET http://x:99999999/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "no address": b"GET http://[/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "no Host": b"GET /api/public/ping HTTP/1.1\r\n\r\n",
    "two Hosts": get(b"Host: y"),
    "a space behind a name": get(b"X-A : b"),
    "a folded line": get(b"X-A: b", b" c"),
    "no colon": get(b"XA"),
    "NUL in a header": get(b"X-A: a\0b"),
    "CR in a header": get(b"X-A: a\rb"),
    "bare line feeds": b"GET /api/public/ping HTTP/1.1\nHost: x\n\n",
    "two kinds of length": head_of_post(CHUNKED + b"Content-Length: 4\r\n") + b"0\r\n\r\n",
    "two lengths": head_of_post(JSON + b"Content-Length: 2\r\nContent-Length: 3\r\n") + b"{}",
    "a length below zero": head_of_post(JSON + b"Content-Length: -1\r\n"),
    "a length with a sign": head_of_post(JSON + b"Content-Length: +2\r\n") + b"{}",
    "a length in words": head_of_post(JSON + b"Content-Length: two\r\n") + b"{}",
    "a length beyond counting": head_of_post(JSON + b"Content-Length: " + b"9" * 30 + b"\r\n"),
    "an unknown transfer coding": head_of_post(JSON + b"Transfer-Encoding: frob\r\n") + b"abc",
    "a chunk without a size": head_of_post(CHUNKED) + b"zz\r\nabc\r\n",
    "a chunk below zero": head_of_post(CHUNKED) + b"-1\r\n",
    "a chunk longer than said": head_of_post(CHUNKED) + b"3\r\nabcd\r\n0\r\n\r\n",
    "two media types": post(GOOD, JSON + b"Content-Type: text/plain\r\n"),
}


@pytest.mark.parametrize("raw", NOT_MESSAGES.values(), ids=NOT_MESSAGES)
async def test_a_message_that_is_no_http_is_refused(edge: Any, raw: bytes) -> None:
    """It gets 400 with a sentence, and the connection ends: nobody knows what would follow."""
    answer = await ask(edge, raw)

    assert (answer.status, answer.error(), answer.closes) == (400, NOT_HTTP, True)


@pytest.mark.parametrize(
    "raw",
    [
        get(target=b"/" + b"a" * 70_000),
        get(b"X-A: " + b"a" * 9_000),
        get(b"X-" + b"a" * 9_000 + b": b"),
    ],
    ids=["request line", "header", "name"],
)
async def test_a_head_that_is_too_long_is_refused(edge: Any, raw: bytes) -> None:
    """The sentence says what is too long."""
    answer = await ask(edge, raw)

    assert (answer.status, answer.error(), answer.closes) == (400, TOO_LONG, True)


async def test_too_many_headers_are_refused(edge: Any) -> None:
    """Their number is bounded as well."""
    answer = await ask(edge, get(*(b"X-%d: a" % number for number in range(500))))

    assert (answer.status, answer.closes) == (400, True)
    assert answer.error()


async def test_a_long_query_is_taken(edge: Any) -> None:
    """A filter may list hundreds of identifiers."""
    ids = ",".join(["00000000-0000-4000-8000-000000000000"] * 900)
    target = f"/api/public/v1/admin/leads?id=in.({ids})".encode()
    answer = await ask(edge, get(b"X-API-Key: " + (await edge.key()).encode(), target=target))

    assert (answer.status, answer.body) == (200, b"[]")


@pytest.mark.parametrize(
    "line",
    [
        b"FROB / HTTP/1.1",
        b"get / HTTP/1.1",
        b"GETTER /api/public/ping HTTP/1.1",
        b"DESCRIBE /none HTTP/1.1",
        b"IT'S http://x/ HTTP/1.1",
        b"CONNECT example.org:443 HTTP/1.1",
        b"CONNECT journal.test:80 HTTP/1.1",
    ],
)
async def test_an_unknown_method_is_not_implemented(edge: Any, line: bytes) -> None:
    """501 at any target (RFC 9110, section 9.1); names of methods are case-sensitive."""
    answer = await ask(edge, line + b"\r\nHost: x\r\n\r\n")

    assert (answer.status, answer.error()) == (501, "Unknown method")


async def test_the_options_of_the_server_are_answered(edge: Any) -> None:
    """`OPTIONS *` asks for those of no resource (RFC 9110, section 9.3.7)."""
    async with connect(edge.url) as connection:
        answer = await connection.ask(b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await connection.is_reusable()

    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["Allow"] == "GET, HEAD, POST, PATCH, DELETE, OPTIONS"


async def test_a_target_without_a_path_is_the_root(make_edge: Any) -> None:
    """The path of an absolute target; for `OPTIONS` it is the server (RFC 9112, section 3.2.4)."""
    async with make_edge(SITE_URL="http://localhost") as edge:
        statuses = []
        for method in (b"GET", b"OPTIONS", b"FROB"):
            for target in (b"http://localhost", b"http://localhost/"):
                async with connect(edge.url) as connection:
                    line = method + b" " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n"
                    statuses.append((await connection.ask(line)).status)

    assert 501 not in statuses[:2]
    assert statuses[2:] == [204, 204, 501, 501]


@pytest.mark.parametrize(
    ("site_url", "named"),
    [
        ("http://journal.test", ("journal.test", "JOURNAL.TEST:80", "localhost", "[::1]:8000")),
        ("http://127.0.0.1:8000", ("127.0.0.1:1", "localhost", "[::1]")),
    ],
)
async def test_an_absolute_target_names_the_host(
    make_edge: Any, site_url: str, named: tuple[str, ...]
) -> None:
    """Its host counts, whatever the field says (RFC 9112, section 3.2.2); a foreign one is 421."""
    async with make_edge(SITE_URL=site_url) as edge:
        for host in (*named, "a.example", "127.0.0.2", "x@a.example", "journal.test.a.example"):
            target = f"GET http://{host}/api/public/ping HTTP/1.1\r\nHost: ".encode()
            for field in (b"a.example", b"localhost", b"journal.test"):
                async with connect(edge.url) as connection:
                    answer = await connection.ask(target + field + b"\r\n\r\n")
                assert answer.status == (200 if host in named else 421), (host, field)
                assert answer.status == 200 or answer.error().startswith("Use ")


@pytest.mark.parametrize("method", ["TRACE", "PUT", "PROPFIND", "DELETE"])
@pytest.mark.parametrize("path", ["/api/public/ping", LEADS, "/", "/.well-known/api-catalog"])
async def test_another_method_is_refused(edge: Any, method: str, path: str) -> None:
    """405 names those that there are; what was sent is never echoed."""
    raw = f"{method} {path} HTTP/1.1\r\nHost: x\r\nX-Secret: s3cr3t\r\n\r\n".encode()
    answer = await ask(edge, raw)

    assert (answer.status, answer.error()) == (405, "Method not allowed")
    assert method not in answer.headers["Allow"]
    assert b"s3cr3t" not in answer.body


@pytest.mark.parametrize(
    "target",
    [b"/api/", b"/api/none", b"/api/public/v1/none", b"/api/public/v1/posts/a/b", b"/api/%2e%2e/"],
)
@pytest.mark.parametrize("method", [b"GET", b"POST", b"OPTIONS", b"TRACE"])
async def test_an_unknown_path_of_the_api(edge: Any, method: bytes, target: bytes) -> None:
    """It is not found, whatever the method."""
    answer = await ask(edge, method + b" " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")

    assert answer.status == 404
    assert answer.error() == "No such endpoint: see /api/public/v1/"


@pytest.mark.parametrize("slug", [b"%zz", b"%ff", b"%00", b"%2F..%2F", b"a%0d%0ab", b"\xff", b"%"])
async def test_a_slug_that_cannot_be(edge: Any, slug: bytes) -> None:
    """It is refused or not found, and never found."""
    key = b"X-API-Key: " + (await edge.key()).encode()
    answer = await ask(edge, get(key, target=b"/api/public/v1/posts/" + slug))

    assert answer.status in (400, 404)
    assert answer.error()


JSON_FAULTS: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", EMPTY),
    "not UTF-8": (changed(b'"\xff"'), NOT_UTF8),
    "a surrogate in UTF-8": (changed(b'"\xed\xa0\x80"'), NOT_UTF8),
    "UTF-16": (GOOD.decode().encode("utf-16"), NOT_UTF8),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD, "is not valid JSON (line 1, column 1)"),
    "a lone surrogate": (changed(b'"\\ud800"'), "is not valid JSON"),
    "NUL, escaped": (changed(b'"a\\u0000"'), "name: must not contain NUL"),
    "NUL, raw": (changed(b'"a\0"'), "is not valid JSON"),
    "a line break, raw": (changed(b'"a\nb"'), "is not valid JSON"),
    "deep lists": (b"[" * 30_000 + b"]" * 30_000, "is not valid JSON"),
    "deep objects": (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "is not valid JSON"),
    "1e400": (changed(b"1e400"), "is not valid JSON"),
    "NaN": (b"NaN", "is not valid JSON"),
    "a number of 5,000 digits": (changed(b"9" * 5000), "is not valid JSON"),
    "text behind it": (GOOD + b"x", "is not valid JSON"),
    "half of it": (GOOD[:20], "is not valid JSON"),
    "single quotes": (b"{'name': 'Ann'}", "is not valid JSON"),
    "a comma too many": (b'{"name": "Ann",}', "is not valid JSON"),
    "a list": (b"[]", "body: must be an object"),
    "null": (b"null", "body: must be an object"),
    "a string": (b'"Ann"', "body: must be an object"),
    "a number": (changed(b"1"), "name: "),
    "no member": (b"{}", "name: "),
}


@pytest.mark.parametrize(("raw", "message"), JSON_FAULTS.values(), ids=JSON_FAULTS)
async def test_a_body_that_is_no_lead(edge: Any, raw: bytes, message: str) -> None:
    """400 says what is wrong with it, and the connection serves on."""
    answer = await ask(edge, post(raw))

    assert (answer.status, answer.closes) == (400, False)
    assert message in answer.error()
    assert json.loads(await edge.service[Leads].recent(200)) == {"leads": [], "count": 0}


async def test_a_deep_body_on_the_administrative_paths(edge: Any) -> None:
    """There a megabyte is taken, and 100,000 levels are refused like any other fault."""
    deep = b"[" * 100_000 + b"]" * 100_000
    key = await edge.key()
    for path in ("leads", "email_send_log"):
        async with edge.ask(
            "POST",
            f"/api/public/v1/admin/{path}",
            key,
            data=deep,
            headers={"Content-Type": "application/json"},
        ) as answer:
            assert answer.status == 400
            assert "is not valid JSON" in (await answer.json())["error"]


async def test_the_last_of_two_members_of_one_name_counts(edge: Any) -> None:
    """As in every common JSON parser."""
    answer = await ask(edge, post(GOOD.replace(b"{", b'{"name": "Zed",')))

    assert answer.status == 201
    assert json.loads(answer.body)["name"] == "Ann"


LARGE_BODIES = {
    "announced": post(b'"' + b"x" * 70_000 + b'"'),
    "announced alone": head_of_post(JSON + b"Content-Length: 10000000\r\n"),
    "in chunks": head_of_post(CHUNKED) + (b"4000\r\n" + b"x" * 0x4000 + b"\r\n") * 6 + b"0\r\n\r\n",
    "a bomb": post(gzip.compress(b" " * 50_000_000), GZIP),
    "a bomb in chunks": head_of_post(CHUNKED + b"Content-Encoding: gzip\r\n")
    + chunk(gzip.compress(b" " * 1_000_000)),
    "a bomb of deflate": post(zlib.compress(b" " * 50_000_000), JSON + DEFLATE),
    "a bomb of brotli": post(brotli.compress(b" " * 50_000_000), JSON + BROTLI),
}


@pytest.mark.parametrize("raw", LARGE_BODIES.values(), ids=LARGE_BODIES)
async def test_a_body_beyond_the_limit(edge: Any, raw: bytes) -> None:
    """It is refused before it fills memory, and the answer arrives before the connection ends."""
    answer = await ask(edge, raw)

    assert (answer.status, answer.error(), answer.closes) == (413, LARGE, True)


async def test_a_body_beyond_the_limit_in_pieces(
    edge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece is within the limit; together they are not."""
    monkeypatch.setattr(body_module, "BODY_TIMEOUT_SECONDS", patience())
    piece = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    async with connect(edge.url) as connection:
        connection.writer.write(head_of_post(CHUNKED))
        answering = asyncio.create_task(connection.answer())
        for _ in range(5):
            connection.writer.write(piece)
            await asyncio.sleep(0.1)
        connection.writer.write(b"0\r\n\r\n")
        answer = await answering

    assert (answer.status, answer.error()) == (413, LARGE)


async def test_a_body_at_the_limit_is_read(edge: Any) -> None:
    """64 KiB and no byte more; blanks around the JSON count."""
    exact = GOOD.ljust(64 * 1024)

    assert (await ask(edge, post(exact))).status == 201
    assert (await ask(edge, post(exact + b" "))).status == 413


@pytest.mark.parametrize(
    "raw",
    [
        head_of_post(JSON + b"Content-Length: 100\r\n") + b'{"name"',
        head_of_post(JSON + b"Content-Length: 100\r\n"),
        head_of_post(CHUNKED) + b'7\r\n{"name"\r\n',
        head_of_post(CHUNKED),
    ],
    ids=["half", "nothing", "a chunk", "no chunk"],
)
async def test_a_body_that_never_ends(edge: Any, raw: bytes) -> None:
    """It is cut off with 408, and nothing is stored."""
    answer = await ask(edge, raw)

    assert (answer.status, answer.closes) == (408, True)
    assert answer.error() == "The body took longer than 10 seconds"
    assert json.loads(await edge.service[Leads].recent(200)) == {"leads": [], "count": 0}


async def test_a_body_that_drips_is_cut_off(edge: Any) -> None:
    """Bytes that keep coming do not buy more time."""
    async with connect(edge.url) as connection:
        connection.writer.write(head_of_post(JSON + b"Content-Length: 1000\r\n"))
        waiting = connection.reader.readuntil(b"\r\n")
        task = asyncio.ensure_future(waiting)
        for _ in range(200):
            connection.writer.write(b" ")
            await asyncio.wait([task], timeout=0.05)
            if task.done():
                break
        assert (await task).startswith(b"HTTP/1.1 408 ")


MEDIA_TYPES = {
    "none": (b"", 415),
    "text": (b"Content-Type: text/plain\r\n", 415),
    "a form": (b"Content-Type: application/x-www-form-urlencoded\r\n", 415),
    "another JSON": (b"Content-Type: application/vnd.api+json\r\n", 415),
    "not ASCII": (b"Content-Type: \xff\r\n", 415),
    "nothing in it": (b"Content-Type:\r\n", 415),
    "Latin-1": (b"Content-Type: application/json; charset=latin-1\r\n", 415),
    "a charset like it": (b"Content-Type: application/json; charset=utf-8-sig\r\n", 415),
    "UTF-8": (b"Content-Type: application/json; charset=utf-8\r\n", 201),
    "in capitals and quotes": (b'Content-Type: Application/JSON;Charset="UTF-8"\r\n', 201),
    "its other name": (b"Content-Type: application/json; charset=utf8\r\n", 201),
    "another parameter": (b"Content-Type: application/json; profile=x\r\n", 201),
}


@pytest.mark.parametrize(("header", "status"), MEDIA_TYPES.values(), ids=MEDIA_TYPES)
async def test_the_media_type_of_a_body(edge: Any, header: bytes, status: int) -> None:
    """JSON in UTF-8 is taken, and said to be wanted where another was sent."""
    answer = await ask(edge, post(GOOD, header))

    assert answer.status == status
    if status == 415:
        assert answer.error() == MEDIA_TYPE


CODINGS = {
    "gzip": (gzip.compress(GOOD), b"gzip", 201),
    "identity": (GOOD, b"identity", 201),
    "two members": (gzip.compress(GOOD[:20]) + gzip.compress(GOOD[20:]), b"gzip", 201),
    "deflate": (zlib.compress(GOOD), b"deflate", 201),
    "deflate in capitals": (zlib.compress(GOOD), b"Deflate", 201),
    "deflate without its frame": (zlib.compress(GOOD)[2:-4], b"deflate", 201),
    "brotli": (brotli.compress(GOOD), b"br", 201),
    "nothing": (b"", b"gzip", 400),
    "cut short": (gzip.compress(GOOD)[:40], b"gzip", 400),
    "no length": (gzip.compress(GOOD)[:-4], b"gzip", 400),
    "no checksum": (gzip.compress(GOOD)[:-8], b"gzip", 400),
    "another checksum": (gzip.compress(GOOD)[:-8] + b"\0" * 8, b"gzip", 400),
    "text behind it": (gzip.compress(GOOD) + b"x", b"gzip", 400),
    "half a second member": (gzip.compress(GOOD) + gzip.compress(b" ")[:-4], b"gzip", 400),
    "deflate cut short": (zlib.compress(GOOD)[:-4], b"deflate", 400),
    "text behind deflate": (zlib.compress(GOOD) + b"x", b"deflate", 400),
    "text behind brotli": (brotli.compress(GOOD) + b"x", b"br", 400),
    "deflate without its end": (zlib.compress(GOOD)[2:-6], b"deflate", 400),
    "brotli cut short": (brotli.compress(GOOD)[:-1], b"br", 400),
    "no gzip": (b"not gzip", b"gzip", 400),
    "no deflate": (b"\x00\x01\x02", b"deflate", 400),
    "no brotli": (b"\xff\xff", b"br", 400),
    "unknown": (GOOD, b"frob", 415),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x00\x11\x00\x00{}", b"zstd", 415),
    "zstd in capitals": (GOOD, b"ZSTD", 415),
    "two lines": (GOOD, b"gzip\r\nContent-Encoding: zstd", 415),
    "twice": (gzip.compress(gzip.compress(GOOD)), b"gzip, gzip", 415),
}


@pytest.mark.parametrize(("raw", "coding", "status"), CODINGS.values(), ids=CODINGS)
async def test_the_coding_of_a_body(
    edge: Any, caplog: pytest.LogCaptureFixture, raw: bytes, coding: bytes, status: int
) -> None:
    """A known one is undone; a broken or unknown one is the client's fault, not the log's."""
    answer = await ask(edge, post(raw, JSON + b"Content-Encoding: " + coding + b"\r\n"))

    assert answer.status == status
    if status == 400:
        assert answer.error() == (BROKEN if raw else EMPTY)
    if status == 415:
        assert answer.error() == "Known codings are gzip, deflate, br"
        assert answer.headers["Accept-Encoding"] == "gzip, deflate, br"
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_body_in_chunks_is_taken(edge: Any) -> None:
    """With extensions and trailers, which mean nothing here."""
    size = b"%x" % len(GOOD)
    for raw in (chunk(GOOD), size + b";a=b\r\n" + GOOD + b"\r\n0\r\nX-Trailer: 1\r\n\r\n"):
        assert (await ask(edge, head_of_post(CHUNKED) + raw)).status == 201


async def test_another_transfer_coding_is_refused(edge: Any) -> None:
    """A body that is compressed for its transfer is not read as JSON."""
    header = JSON + b"Transfer-Encoding: gzip, chunked\r\n"
    answer = await ask(edge, head_of_post(header) + chunk(GOOD))

    assert answer.status == 400
    assert answer.error().startswith("Of transfer codings, only chunked is known")


async def test_a_body_where_none_is_wanted_is_passed_over(edge: Any) -> None:
    """The request behind it is read from where it begins."""
    for body in (b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
        raw = get()[:-2] + body
        assert (await ask(edge, raw)).status == 200


async def test_an_expectation(edge: Any) -> None:
    """A client that waits gets 100 Continue; another expectation is refused."""
    length = b"Content-Length: %d\r\n" % len(GOOD)
    async with connect(edge.url) as connection:
        connection.writer.write(head_of_post(JSON + length + b"Expect: 100-continue\r\n"))
        assert await connection.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert (await connection.ask(GOOD)).status == 201
    answer = await ask(edge, post(GOOD, JSON + b"Expect: frob\r\n"))
    assert answer.status == 400
    assert answer.error() == "Of expectations, only 100-continue is known"


async def test_a_client_that_goes_away_is_no_fault_of_ours(
    edge: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A body that breaks off with its connection is not logged as an error."""
    async with connect(edge.url) as connection:
        connection.writer.write(head_of_post(JSON + b"Content-Length: 100\r\n") + GOOD[:10])
        await asyncio.sleep(0.05)
        connection.writer.transport.abort()
    await asyncio.sleep(0.1)

    assert (await ask(edge, get())).status == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_client_that_reads_nothing_is_made_to_wait(
    edge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests one behind another are not answered into memory without end."""
    begun, stopped = 0, asyncio.Event()
    pause_writing = server_module.ConnectionProtocol.pause_writing

    def count(request: Request) -> None:
        nonlocal begun
        begun += 1
        assign_request_id(request)

    def stop(connection: server_module.ConnectionProtocol) -> None:
        pause_writing(connection)
        stopped.set()

    monkeypatch.setattr(app_module, "assign_request_id", count)
    monkeypatch.setattr(server_module.ConnectionProtocol, "pause_writing", stop)
    async with connect(edge.url) as connection:
        connection.writer.write(get(target=b"/journal/first/") * 10_000)
        async with asyncio.timeout(patience()):
            await stopped.wait()
        before = begun
        await asyncio.sleep(0.3)  # too short a time would only show less

    assert 0 < begun < 10_000
    assert begun <= before + 1


async def test_a_list_header_may_be_on_several_lines(edge: Any) -> None:
    """Fields that are lists mean the same on one line and on two (RFC 9110, section 5.3)."""
    document = b"/api/public/v1/openapi.json"
    etag = (await ask(edge, get(target=document))).headers["ETag"].encode()
    lines = (b'If-None-Match: "another"', b"If-None-Match: " + etag)

    assert (await ask(edge, get(*lines, target=document))).status == 304


async def test_an_upgrade_is_declined(edge: Any) -> None:
    """The request is answered as if it had not asked."""
    for protocol in (b"websocket", b"h2c"):
        raw = get(b"Connection: Upgrade", b"Upgrade: " + protocol)
        async with connect(edge.url) as connection:
            assert (await connection.ask(raw)).status == 200


@pytest.mark.parametrize("lines", [b"", b"Connection: keep-alive\r\n"])
async def test_an_old_client_is_answered_and_closed(edge: Any, lines: bytes) -> None:
    """HTTP/1.0 gets a length and the end of the connection."""
    raw = b"GET /api/public/ping HTTP/1.0\r\n" + lines + b"\r\n"
    answer = await ask(edge, raw)
    assert (answer.status, answer.body, answer.closes) == (200, b'{"status":"ok"}', True)

    length = b"Content-Length: %d\r\n" % 70_000
    answer = await ask(edge, head_of_post(JSON + length, b"1.0"))
    assert (answer.status, answer.closes) == (413, True)


async def test_requests_sent_at_once_are_answered_in_order(edge: Any) -> None:
    """Also behind a body that was refused unread."""
    raw = post(GOOD, b"Content-Type: text/plain\r\n") + get() + post(GOOD) + get(target=b"/api/x")
    async with connect(edge.url) as connection:
        connection.writer.write(raw * 5)
        for _ in range(5):
            statuses = [(await connection.answer()).status for _ in range(4)]
            assert statuses == [415, 200, 201, 404]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (b"abcdefgh", True),
        (b"A-1" * 21, True),
        (b"short", False),
        (b"x" * 65, False),
        (b"has blank", False),
        (b"line%0d%0a", False),
        (b"\xff" * 10, False),
        (b"<script>", False),
    ],
)
async def test_a_request_id_comes_back(edge: Any, sent: bytes, kept: object) -> None:
    """A well-formed one is kept, any other replaced by a new one, also on errors."""
    for target in (b"/api/public/ping", b"/", b"/api/none", b"/none"):
        answer = await ask(edge, get(b"X-Request-ID: " + sent, target=target))
        assert (answer.headers["X-Request-ID"].encode("latin-1") == sent) is kept


CREDENTIALS: dict[str, tuple[list[bytes], int]] = {
    "a key": ([b"X-API-Key: KEY"], 200),
    "blanks around it": ([b"X-API-Key:   KEY  "], 200),
    "a token": ([b"Authorization: Bearer KEY"], 200),
    "odd letters": ([b"AUTHORIZATION: bEaReR KEY"], 200),
    "two blanks": ([b"Authorization: Bearer  KEY"], 200),
    "both, alike": ([b"X-API-Key: KEY", b"Authorization: Bearer KEY"], 200),
    "twice the same": ([b"X-API-Key: KEY", b"X-API-Key: KEY"], 200),
    "beside Basic": ([b"X-API-Key: KEY", b"Authorization: Basic eDp5"], 200),
    "beside Digest": ([b"X-API-Key: KEY", b'Authorization: Digest username="x"'], 200),
    "two that differ": ([b"X-API-Key: KEY", b"Authorization: Bearer OTHER"], 400),
    "two keys": ([b"X-API-Key: KEY", b"X-API-Key: OTHER"], 400),
    "two keys, one wrong": ([b"X-API-Key: KEY", b"X-API-Key: nonsense"], 400),
    "an empty one beside it": ([b"X-API-Key:", b"Authorization: Bearer KEY"], 400),
    "no blank": ([b"Authorization: BearerKEY"], 401),
    "a comma": ([b"Authorization: Bearer KEY, Bearer KEY"], 401),
    "another scheme": ([b"Authorization: Token KEY"], 401),
    "no scheme": ([b"Authorization: KEY"], 401),
    "an empty key": ([b"X-API-Key:"], 401),
    "an empty token": ([b"Authorization: Bearer"], 401),
    "not ASCII": ([b"X-API-Key: \xff\xfe"], 401),
    "a long one": ([b"X-API-Key: " + b"k" * 8000], 401),
    "in the query": ([], 401),
}


@pytest.mark.parametrize(("lines", "status"), CREDENTIALS.values(), ids=CREDENTIALS)
async def test_headers_that_may_carry_a_credential(
    edge: Any, lines: list[bytes], status: int
) -> None:
    """In one of two headers, and in one only if they differ."""
    key, other = (await edge.key()).encode(), (await edge.key()).encode()
    sent = [line.replace(b"KEY", key).replace(b"OTHER", other) for line in lines]
    target = LEADS.encode() + (b"" if lines else b"?key=" + key)

    answer = await ask(edge, get(*sent, target=target))
    assert answer.status == status
    if status == 400:
        assert answer.error() == TWO
    if status == 401:
        assert answer.error() == "Missing or invalid credential"
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
