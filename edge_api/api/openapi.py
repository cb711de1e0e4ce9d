"""The OpenAPI 3.1 document, made from the declared operations and nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from edge_api.api import other_tables
from edge_api.api.operation import Dialect, Operation, Parameter, Success
from edge_api.api.reply import JSON
from edge_api.schema.paths import DOCS
from edge_api.schema.problems import PROBLEMS, Code

Json = dict[str, Any]

API_KEY_SCHEME = "ApiKeyHeader"
BEARER_SCHEME = "ApiKeyBearer"
TOKEN_SCHEME = "AccessToken"  # noqa: S105  a name

_ABOUT = """\
Journal posts, leads (enquiries) and row access to the administrative tables.

Every error is an object with one member, `error`, a sentence that says what to mend; errors of the
administrative operations carry the members of PostgREST's errors beside it. Times are UTC in
RFC 3339. Lists stand newest first. Every answer repeats or makes an `X-Request-ID`."""

_ERROR: Json = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string", "description": "What is wrong, and the mend."}},
    "additionalProperties": False,
}
_ADMIN_ERROR: Json = {
    "type": "object",
    "required": ["error", "message", "code", "details", "hint"],
    "properties": {
        "error": {"type": "string", "description": "What is wrong, and the mend."},
        "message": {"type": "string", "description": "The same as `error`."},
        "code": {"type": "string", "description": "PostgREST's or PostgreSQL's code."},
        "details": {"type": ["string", "null"]},
        "hint": {"type": ["string", "null"]},
    },
    "additionalProperties": False,
}
_OAUTH_ERROR: Json = {
    "type": "object",
    "required": ["error", "error_description"],
    "properties": {
        "error": {"type": "string", "description": "A code of RFC 6749, 7009, 7591 or 8707."},
        "error_description": {"type": "string", "description": "What is wrong, and the mend."},
    },
    "additionalProperties": False,
}
_JSONRPC_ERROR: Json = {
    "type": "object",
    "required": ["jsonrpc", "id", "error"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer", "null"], "description": "`null` where none is known."},
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "integer", "description": "JSON-RPC's or MCP's code."},
                "message": {"type": "string", "description": "What is wrong, and the mend."},
                "data": {"description": "What MCP says beside it."},
            },
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}
_ERRORS: Json = {
    "Error": _ERROR,
    "AdminError": _ADMIN_ERROR,
    "OAuthError": _OAUTH_ERROR,
    "JsonRpcError": _JSONRPC_ERROR,
}
_ERROR_NAMES: Mapping[Dialect, str] = {  # but of pages, which are no JSON
    "plain": "Error",
    "postgrest": "AdminError",
    "oauth": "OAuthError",
    "jsonrpc": "JsonRpcError",
}
_STATUS_HEADERS: Mapping[int, Mapping[str, str]] = {
    401: {"WWW-Authenticate": "How to authenticate (RFC 6750, section 3)."},
    429: {"Retry-After": "Seconds until the next request will be taken."},
    503: {"Retry-After": "Seconds until another try makes sense."},
}


def problem_codes(operation: Operation) -> tuple[Code, ...]:
    """Return every problem the operation can answer with: its own and those of its declaration."""
    codes: list[Code] = list(operation.problems)
    if operation.credential != "none":
        codes += ["invalid", "unauthenticated", "too_many_requests", "unavailable"]
    if operation.scope is not None:
        codes += ["insufficient_scope"]
    if operation.limit:
        codes += ["too_many_requests"]
    if operation.body is not None:
        codes += ["invalid", "body_timeout", "too_large", "unsupported_media_type"]
    if operation.query is not None:
        codes += ["invalid"]
    return tuple(dict.fromkeys(codes))


def openapi_document(
    operations: Sequence[Operation], site_url: str, version: str, samples: Mapping[str, str]
) -> Json:
    """Return the document; `samples` gives path parameters without an example one that exists."""
    definitions: Json = dict(_ERRORS)
    paths: Json = {other_tables.PATH: other_tables.SIGNPOST}
    for operation in operations:
        entry = _hoist(_operation(operation, samples), definitions)
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
    return {
        "openapi": "3.1.0",
        "info": {"title": "Public API", "version": version, "description": _ABOUT},
        "externalDocs": {"url": f"{site_url}{DOCS}", "description": "The reference, for people."},
        "servers": [{"url": site_url}],
        "tags": [{"name": tag} for tag in dict.fromkeys(item.tag for item in operations)],
        "paths": paths,
        "components": {"schemas": definitions, "securitySchemes": _security_schemes()},
    }


def _operation(operation: Operation, samples: Mapping[str, str]) -> Json:
    entry: Json = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "security": _security(operation),
        "responses": _responses(operation),
    }
    if operation.description:
        entry["description"] = operation.description
    parameters = [_parameter(item, samples) for item in operation.parameters]
    parameters += _query_parameters(operation)
    if parameters:
        entry["parameters"] = parameters
    if operation.body is not None:
        entry["requestBody"] = _request_body(operation)
    return entry


def _security_schemes() -> Json:
    return {
        API_KEY_SCHEME: {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        BEARER_SCHEME: {"type": "http", "scheme": "bearer", "description": "The same API key."},
        TOKEN_SCHEME: {"type": "http", "scheme": "bearer", "description": "An access token."},
    }


def _security(operation: Operation) -> list[Json]:
    """Return the ways in; OpenAPI 3.1 lets the list behind a scheme name what it must allow."""
    if operation.credential == "none":
        return []
    scopes = [operation.scope] if operation.scope else []
    if operation.door == "mcp":
        return [{TOKEN_SCHEME: scopes}]
    ways: list[Json] = [{API_KEY_SCHEME: scopes}, {BEARER_SCHEME: scopes}]
    return [*ways, {}] if operation.credential == "optional" else ways


def _parameter(parameter: Parameter, samples: Mapping[str, str]) -> Json:
    entry: Json = {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required or parameter.place == "path",
        "schema": dict(parameter.schema),
        "description": parameter.sentence,
    }
    example = parameter.example if parameter.example is not None else samples.get(parameter.name)
    if example is not None:
        entry["example"] = example
    return entry


def _query_parameters(operation: Operation) -> list[Json]:
    if operation.query is None:
        return []
    schema = operation.query.model_json_schema()
    return [_query_parameter(name, entry) for name, entry in schema["properties"].items()]


def _query_parameter(name: str, schema: Json) -> Json:
    schema = {key: value for key, value in schema.items() if key != "title"}
    description = schema.pop("description", "")
    examples = schema.pop("examples", [])
    entry: Json = {"name": name, "in": "query", "required": False, "schema": present_schema(schema)}
    if description:
        entry["description"] = description
    if examples:
        entry["example"] = examples[0]
    return entry


def present_schema(schema: Json) -> Json:
    """Return the schema of a parameter that is present: absence is no `null` in a query."""
    choices = [choice for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) != 1:
        return schema
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**choices[0], **rest}


def _request_body(operation: Operation) -> Json:
    body = operation.body
    assert body is not None  # noqa: S101  the caller looked
    content: Json = {"schema": dict(body.schema)}
    if body.examples:
        content["examples"] = {name: {"value": value} for name, value in body.examples.items()}
    return {"required": True, "content": {body.media_type: content}}


def _responses(operation: Operation) -> Json:
    responses: Json = {}
    for success in operation.successes:
        entry = responses.setdefault(str(success.status), _success(success))
        entry.get("content", {}).update(_success(success).get("content", {}))
    by_status: dict[int, list[Code]] = {}
    for code in problem_codes(operation):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    for status, codes in sorted(by_status.items()):
        responses.setdefault(str(status), _failure(status, codes, operation))
    return responses


def _success(success: Success) -> Json:
    headers = {"X-Request-ID": "The id of the request.", **success.headers}
    entry: Json = {"description": success.sentence, "headers": _headers(headers)}
    if success.schema is not None:
        entry["content"] = {name: _content(name, success) for name in success.media_types}
    if success.links:
        entry["links"] = dict(success.links)
    return entry


def _content(media_type: str, success: Success) -> Json:
    if "json" not in media_type:
        return {"schema": {"type": "string"}}
    assert success.schema is not None  # noqa: S101  the caller looked
    example = {"example": success.example} if success.example is not None else {}
    return {"schema": dict(success.schema), **example}


def _failure(status: int, codes: Iterable[Code], operation: Operation) -> Json:
    return {
        "description": "; ".join(PROBLEMS[code].sentence for code in codes),
        "headers": _headers(
            {"X-Request-ID": "The id of the request.", **_STATUS_HEADERS.get(status, {})}
        ),
        "content": _error_content(status, operation.dialect),
    }


def _error_content(status: int, dialect: Dialect) -> Json:
    if dialect == "page":
        return {kind: {"schema": {"type": "string"}} for kind in ("text/html", "text/markdown")}
    name = _ERROR_NAMES[dialect]
    if dialect == "postgrest" and status == PROBLEMS["unauthenticated"].status:
        name = "Error"
    return {JSON: {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _headers(sentences: Mapping[str, str]) -> Json:
    return {
        name: {"description": sentence, "schema": {"type": "string"}}
        for name, sentence in sentences.items()
    }


def _hoist(value: Any, definitions: Json) -> Any:
    """Return `value` with every `$defs` below it moved into the document's components."""
    match value:
        case dict():
            for name, schema in value.get("$defs", {}).items():
                definitions[name] = _hoist(schema, definitions)
            return {
                key: _hoist_reference(item) if key == "$ref" else _hoist(item, definitions)
                for key, item in value.items()
                if key != "$defs"
            }
        case list() | tuple():
            return [_hoist(item, definitions) for item in value]
    return value


def _hoist_reference(reference: str) -> str:
    return reference.replace("#/$defs/", "#/components/schemas/")
