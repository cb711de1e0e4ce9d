"""Reading the body of a request within limits of size and time, decompressing and decoding it."""

import asyncio
import gzip
import re
import zlib
from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final
from urllib.parse import parse_qs

import brotli
import orjson
from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError

from edge_api.db.problems import Problem
from edge_api.db.types import refuse_inexact
from edge_api.http.response import Request, joined_header
from edge_api.operation.input import FormFile
from edge_api.operation.model import FORM, Body, check_body
from edge_api.schema.sentences import sentence

CODINGS: Final = ("gzip", "deflate", "br")
"""Content codings that the service decompresses."""
_CLOSE: Mapping[str, str] = {"Connection": "close"}
"""Sent if a body was not read to its end: the start of the next request is then unknown."""
MAX_FORM_FIELDS: Final = 100  # the most members of a form; ours have less than a third of that
BODY_TIMEOUT_SECONDS: Final = 10.0  # time limit for the whole body: aiohttp itself has none
UPLOAD_SECONDS: Final = 180.0  # that of a form with files, and of a body of more than 1 MiB
MAX_UPLOAD_BYTES: Final = 64 * 1024 * 1024
"""Most bytes of a form with files: a file beyond its limit is read, so that no text is lost."""


async def read_bytes(
    request: Request,
    max_bytes: int,
    too_large: str = "",
    *,
    keeps: int | None = None,
    seconds: float | None = None,
) -> bytes:
    """Return the whole body; `too_large` replaces the usual message of that problem.

    With `keeps`, return no more than about so many bytes, and drop the rest.

    Raises Problem `too_large` beyond `max_bytes` (after decompression), `body_timeout`,
    `unsupported_media_type` for an unknown coding, `invalid` for a broken one.
    """
    coding = _check_coding(request)
    if (request.content_length or 0) > max_bytes:
        raise _too_large(max_bytes, too_large)
    _send_continue(request)
    if seconds is None:  # a phone may send what is large slowly
        seconds = UPLOAD_SECONDS if max_bytes > 1024 * 1024 else BODY_TIMEOUT_SECONDS
    raw, read = bytearray(), 0
    try:
        # A body that has arrived already needs no time limit.
        async with asyncio.timeout(None if request.content.is_eof() else seconds):
            async for chunk in request.content.iter_any():
                read += len(chunk)
                if keeps is None or len(raw) <= keeps:
                    raw += chunk
                if read > max_bytes:
                    raise _too_large(max_bytes, too_large)
        body = _decompress(bytes(raw), coding, max_bytes + 1)
    except TimeoutError:
        said = f"The body took longer than {seconds:.0f} seconds"
        message = said if seconds > BODY_TIMEOUT_SECONDS else ""
        raise Problem("body_timeout", message, headers=_CLOSE) from None
    except (
        HttpProcessingError,
        web.RequestPayloadError,
        EOFError,
        gzip.BadGzipFile,
        zlib.error,
        brotli.error,
    ):
        raise Problem(
            "invalid", sentence("The body's transfer or content coding is broken"), headers=_CLOSE
        ) from None
    except ConnectionError:  # the client is gone: a problem is not logged as an internal error
        raise Problem("invalid", "The connection ended before the body", headers=_CLOSE) from None
    if len(body) > max_bytes:
        raise _too_large(max_bytes, too_large)
    return body


async def read_parts(
    request: Request, most_text: int, most_file: int, too_large: str
) -> dict[str, str | list[str]]:
    """Return the members of a multipart form (RFC 7578); each file is a `FormFile`.

    Files come last, and the end of a file that is too large is dropped. Raises Problem as
    `read_bytes`, and `invalid` for a malformed form.
    """
    raw = await read_bytes(
        request,
        MAX_UPLOAD_BYTES,
        too_large,
        keeps=most_text + most_file,
        # Only a browser that is signed in may send files, and may take longer.
        seconds=UPLOAD_SECONDS if most_file else BODY_TIMEOUT_SECONDS,
    )
    found = re.search(r'boundary="?([^\s";]{1,70})', request.headers["Content-Type"])
    # aiohttp reads bytes of a header that are no UTF-8 as surrogates.
    delimiter = b"\r\n--" + found[1].encode(errors="surrogateescape") if found else b"\r\n--"
    members: dict[str, list[str]] = {}
    texts = 0
    for part in (b"\r\n" + raw).split(delimiter, MAX_FORM_FIELDS)[1:]:
        head, _, data = part.partition(b"\r\n\r\n")
        name, file = (re.search(rb';\s*%s="([^"]*)"' % key, head) for key in (b"name", b"filename"))
        if not name:  # what follows the last delimiter
            continue
        texts += 0 if file else len(data)
        if texts > most_text:
            raise _too_large(most_text, too_large)
        try:
            text = FormFile(file[1].decode()) if file else data.decode()
        except UnicodeDecodeError:
            raise Problem("invalid", "The form is not in UTF-8") from None
        if isinstance(text, FormFile):
            text.data = data
        members.setdefault(name[1].decode(errors="replace"), []).append(text)
    return {name: values if len(values) > 1 else values[0] for name, values in members.items()}


def _decompress(raw: bytes, coding: str, most: int) -> bytes:
    """Return the decompressed body, or at least its first `most` bytes.

    Raises EOFError, gzip.BadGzipFile, zlib.error or brotli.error.
    """
    if not raw or coding == "identity":
        return raw
    if coding == "gzip":
        return gzip.GzipFile(fileobj=BytesIO(raw)).read(most)
    if coding == "br":
        decoder = brotli.Decompressor()
        body = decoder.process(raw, output_buffer_limit=most)  # type: ignore[call-arg]  # not in its stubs
        is_whole = decoder.is_finished()
    else:  # some clients omit the zlib header (RFC 1950, section 2.2)
        has_header = raw[0] & 0xF == zlib.DEFLATED
        inflater = zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
        body, is_whole = inflater.decompress(raw, most), inflater.eof and not inflater.unused_data
    if len(body) < most and not is_whole:
        raise EOFError
    return body


def _check_coding(request: Request) -> str:
    """Return the content coding; refuse an unknown one (RFC 9110, 8.4; RFC 9112, 6.1)."""
    if request.headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
        raise Problem(
            "invalid",
            "Of transfer codings, only chunked is known: compress with Content-Encoding",
            headers=_CLOSE,
        )
    coding = (joined_header(request.headers, "Content-Encoding") or "identity").lower()
    if coding not in (*CODINGS, "identity"):
        known = ", ".join(CODINGS)
        raise Problem(
            "unsupported_media_type",
            f"Known codings are {known}",
            headers={"Accept-Encoding": known},
        )
    return coding


def _send_continue(request: Request) -> None:
    """Send `100 Continue` to a client that waits for it before the body (RFC 9110, 10.1.1)."""
    expected = request.headers.get("Expect")
    if expected is None or request.transport is None:
        return
    if expected.lower() != "100-continue":
        raise Problem(
            "invalid", sentence("Of expectations, only 100-continue is known"), headers=_CLOSE
        )
    if request.version >= HttpVersion11:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def _too_large(max_bytes: int, message: str) -> Problem:
    usual = sentence("The body is larger than %(size)s KiB", size=str(max_bytes // 1024))
    return Problem("too_large", message or usual, headers=_CLOSE)


def check_media_type(request: Request, body: Body[Any]) -> None:
    """Raise Problem `unsupported_media_type` unless the request has `body.media_type`, in UTF-8."""
    if "Content-Type" not in request.headers and not body.requires_media_type:
        return
    charset = request.charset
    is_utf8 = charset is None or charset.lower() in ("utf-8", "utf8")
    if request.content_type != body.media_type or not is_utf8:
        raise Problem(
            "unsupported_media_type",
            sentence("Send the body as %(type)s in UTF-8", type=body.media_type),
        )


def decode(raw: bytes, body: Body[Any]) -> Any:
    """Return the validated JSON or form. Raises Problem `invalid` that names the member."""
    try:
        value = read_form(raw) if body.media_type == FORM else orjson.loads(raw)
        if body.refuses_inexact_numbers:
            refuse_inexact(raw)
    except orjson.JSONDecodeError as error:
        message = f"The body is not valid JSON (line {error.lineno}, column {error.colno})"
        if not raw:
            message = "The body is empty: send a JSON value"
        elif not error.doc:  # orjson sets no document for bytes that are not UTF-8
            message = "The body is not in UTF-8"
        raise Problem("invalid", message, sqlstate="PGRST102") from None
    except ValueError as error:
        raise Problem("invalid", f"body: {error}", sqlstate="22P02") from None
    return check_body(body.check, value)


def read_form(raw: bytes) -> dict[str, str | list[str]]:
    """Return the members of a form, a repeated one as a list. Raises Problem `invalid`."""
    try:
        members = parse_qs(
            raw.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FORM_FIELDS,
        )
    except ValueError:
        raise Problem(
            "invalid",
            sentence(
                "The form is not in UTF-8, or has more than %(most)s members",
                most=MAX_FORM_FIELDS,
            ),
        ) from None
    return {name: values if len(values) > 1 else values[0] for name, values in members.items()}
