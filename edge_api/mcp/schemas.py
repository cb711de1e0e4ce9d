"""JSON Schemas of what goes in and out at the MCP endpoint and of what leads to it."""

from typing import Any, Final

ID_LONGEST: Final = 256
"""Characters of a request's id: it is given back, and logged by clients."""
BATCH_MOST: Final = 50
"""Messages of a batch."""
ID_NUMBERS: Final = range(-(2**63), 2**63)
"""Those that ids may be: greater ones come out of JSON as no integers (RFC 8259, section 6)."""

_ID: Final = {
    "type": ["string", "integer"],
    "maxLength": ID_LONGEST,
    "minimum": ID_NUMBERS[0],
    "maximum": ID_NUMBERS[-1],
    "description": "Given back.",
}
_PARAMS: Final = {"type": ["object", "null"], "description": "As the method wants them."}
_METHOD: Final = {"type": "string", "description": "Such as `tools/list` or `tools/call`."}
_MESSAGE: Final = {
    "type": "object",
    "description": "A JSON-RPC 2.0 request, or without `id` a notification.",
    "required": ["jsonrpc", "method"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": _ID,
        "method": _METHOD,
        "params": _PARAMS,
    },
}
_ANSWER: Final = {
    "type": "object",
    "description": "A JSON-RPC 2.0 response: a result, or an error of the method.",
    "required": ["jsonrpc", "id"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer", "null"]},
        "result": {"type": "object"},
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}},
        },
    },
    "oneOf": [{"required": ["result"]}, {"required": ["error"]}],
    "additionalProperties": False,
}
MESSAGE: Final[dict[str, Any]] = {
    "anyOf": [_MESSAGE, {"type": "array", "minItems": 1, "maxItems": BATCH_MOST, "items": {}}]
}
"""One message, or a batch; an item of a batch that is no message gets an error."""
ANSWER: Final[dict[str, Any]] = {"anyOf": [_ANSWER, {"type": "array", "items": _ANSWER}]}
CARD: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["$schema", "name", "version", "description", "remotes"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "name": {"type": "string", "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
        "version": {"type": "string"},
        "title": {"type": "string"},
        "description": {"type": "string", "maxLength": 100},
        "websiteUrl": {"type": "string", "format": "uri"},
        "remotes": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "url", "supportedProtocolVersions"],
                "properties": {
                    "type": {"const": "streamable-http"},
                    "url": {"type": "string", "format": "uri"},
                    "supportedProtocolVersions": {"type": "array", "items": {"type": "string"}},
                },
            },
        },
    },
    "additionalProperties": False,
}
EARLIER_CARD: Final[dict[str, Any]] = {
    **CARD,
    "required": [*CARD["required"], "serverInfo", "transport", "capabilities"],
    "properties": {
        **CARD["properties"],
        **{name: {"type": "object"} for name in ("serverInfo", "transport", "capabilities")},
    },
}
CATALOG: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["specVersion", "entries"],
    "properties": {
        "specVersion": {"type": "string"},
        "host": {
            "type": "object",
            "required": ["displayName"],
            "properties": {
                "displayName": {"type": "string"},
                "identifier": {"type": "string"},
                "documentationUrl": {"type": "string", "format": "uri"},
            },
        },
        "entries": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["identifier", "displayName", "type", "url"],
                "properties": {
                    "identifier": {"type": "string", "pattern": "^urn:air:"},
                    "displayName": {"type": "string"},
                    "type": {"type": "string"},
                    "url": {"type": "string", "format": "uri"},
                    "description": {"type": "string"},
                    "version": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "representativeQueries": {
                        "type": "array",
                        "minItems": 2,
                        "maxItems": 5,
                        "items": {"type": "string"},
                    },
                },
            },
        },
    },
}
