"""The body of a request, from bytes on a slow wire to a checked value."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import orjson
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_request import BaseRequest
from pydantic import ValidationError

from edge_api.api.operation import Body
from edge_api.api.reply import JSON
from edge_api.schema.faults import sentence_of
from edge_api.schema.problems import Problem

BODY_SECONDS: Final = 10.0
"""A body that drips in for longer is cut off: aiohttp itself waits for ever."""


async def read_bytes(request: BaseRequest, most: int) -> bytes:
    """Return the whole body.

    Raises Problem `too_large` as soon as it exceeds `most` bytes (after decompression),
    `body_timeout`, and `invalid` for a body whose coding is broken.
    """
    if (request.content_length or 0) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _collect(request, most)
    except TimeoutError:
        raise Problem("body_timeout", headers={"Connection": "close"}) from None
    except (HttpProcessingError, web.RequestPayloadError):
        raise Problem("invalid", "The body's transfer or content coding is broken") from None


async def _collect(request: BaseRequest, most: int) -> bytes:
    chunks = bytearray()
    async for chunk in request.content.iter_any():
        chunks += chunk
        if len(chunks) > most:
            raise _too_large(most)
    return bytes(chunks)


def _too_large(most: int) -> Problem:
    sentence = f"The body is larger than {most // 1024} KiB"
    return Problem("too_large", sentence, headers={"Connection": "close"})


def check_media_type(headers: Mapping[str, str], body: Body) -> None:
    """Raise Problem `unsupported_media_type` unless the body is said to be JSON in UTF-8."""
    sent = headers.get("Content-Type")
    if sent is None and not body.media_type_needed:
        return
    essence, _, parameters = (sent or "").lower().partition(";")
    charset = parameters.replace(" ", "").replace('"', "")
    if essence.strip() != JSON or ("charset=" in charset and "charset=utf-8" not in charset):
        raise Problem("unsupported_media_type", "Send the body as application/json in UTF-8")


def decode(raw: bytes, body: Body) -> Any:
    """Return what the operation's adapter makes of the JSON text.

    Raises Problem `invalid` that says where the JSON breaks off, or names the faulty member.
    """
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Problem("invalid", _json_sentence(error), sqlstate="PGRST102") from None
    try:
        return body.check.validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in fault["loc"]) or "body"
        raise Problem("invalid", f"{where}: {sentence_of(fault)}", sqlstate="PGRST102") from None


def _json_sentence(error: orjson.JSONDecodeError) -> str:
    if not error.doc:
        return "The body is empty: send a JSON value"
    return f"The body is not valid JSON (line {error.lineno}, column {error.colno})"
