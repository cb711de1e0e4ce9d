"""The OpenAPI 3.1 document of a list of operations."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from edge_api.db.problems import PROBLEMS, Code
from edge_api.operation.model import (
    JSON,
    AnyOperation,
    ErrorFormat,
    Json,
    Parameter,
    Schema,
    SuccessResponse,
    component_ref,
    object_schema,
)
from edge_api.schema.credentials import SCOPES
from edge_api.schema.paths import AUTHORIZE, DOCS, METADATA, TOKEN

API_KEY_SCHEME = "ApiKeyHeader"
BEARER_SCHEME = "ApiKeyBearer"
TOKEN_SCHEME = "AccessToken"  # noqa: S105  the name of a scheme, no secret
OAUTH_SCHEME = "OAuth"

_ABOUT = """\
Journal posts, leads (enquiries) and row access to the administrative tables.

Every error is an object with one member, `error`, a sentence that says what to fix; errors of the
administrative operations carry the members of PostgREST's errors beside it, those of writing
`findings` about the text. Times are UTC in
RFC 3339. Lists are sorted newest first. Every answer repeats or makes an `X-Request-ID`. A
service whose own address is a loopback one answers 421 to any other `Host`."""


def _object_schema(**members: Json) -> Json:
    return object_schema(members, *members, additionalProperties=False)


_MESSAGE: Json = {"type": "string", "description": "What is wrong, and what to do."}
_ERRORS: Json = {
    "Error": _object_schema(error=_MESSAGE),
    "AdminError": _object_schema(
        error=_MESSAGE,
        message={"type": "string", "description": "The same as `error`."},
        code={"type": "string", "description": "PostgREST's or PostgreSQL's code."},
        details={"type": ["string", "null"]},
        hint={"type": ["string", "null"]},
    ),
    "OAuthError": _object_schema(
        error={"type": "string", "description": "A code of RFC 6749, 7009, 7591 or 8707."},
        error_description=_MESSAGE,
    ),
    "WritingError": object_schema(
        {
            "error": _MESSAGE,
            "findings": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/Finding"},
                "description": "Defects of the text; absent where another thing is wrong.",
            },
        },
        "error",
        additionalProperties=False,
    ),
    "JsonRpcError": _object_schema(
        jsonrpc={"const": "2.0"},
        id={"type": ["string", "integer", "null"], "description": "`null` where none is known."},
        error=object_schema(
            {
                "code": {"type": "integer", "description": "JSON-RPC's or MCP's code."},
                "message": _MESSAGE,
                "data": {"description": "What MCP says beside it."},
            },
            "code",
            "message",
            additionalProperties=False,
        ),
    ),
}
_ERROR_NAMES: Mapping[ErrorFormat, str] = {
    "plain": "Error",
    "postgrest": "AdminError",
    "oauth": "OAuthError",
    "jsonrpc": "JsonRpcError",
    "writing": "WritingError",
    "page": "PageError",  # in names of responses only: pages have no JSON schema
}
_STATUS_HEADERS: Mapping[int, Mapping[str, str]] = {
    401: {"WWW-Authenticate": "How to authenticate (RFC 6750, section 3)."},
    429: {"Retry-After": "Seconds until the next request will be taken."},
    503: {"Retry-After": "Seconds until another try makes sense."},
}


def problem_codes(operation: AnyOperation) -> tuple[Code, ...]:
    """Return the codes of all problems that an operation can answer with."""
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
    operations: Sequence[AnyOperation], site_url: str, version: str, samples: Mapping[str, str]
) -> Json:
    """Return the document; `samples` has examples for path parameters that declare none."""
    components: Json = {"schemas": dict(_ERRORS), "responses": {}, "parameters": {}}
    paths: Json = {}
    for operation in operations:
        entry = _hoist(_operation(operation, samples, components), components["schemas"])
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
    if "Finding" not in components["schemas"]:  # writing is switched off
        del components["schemas"]["WritingError"]
    for kind in ("parameters", "responses"):
        components[kind] = _hoist(components[kind], components["schemas"])
    return {
        "openapi": "3.1.0",
        "info": {"title": "Public API", "version": version, "description": _ABOUT},
        "externalDocs": {"url": f"{site_url}{DOCS}", "description": "The reference, for people."},
        "servers": [{"url": site_url}],
        "tags": [{"name": tag} for tag in dict.fromkeys(item.tag for item in operations)],
        "paths": paths,
        "components": {**components, "securitySchemes": _security_schemes(site_url)},
    }


def _operation(operation: AnyOperation, samples: Mapping[str, str], components: Json) -> Json:
    entry: Json = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "security": _security(operation),
        "responses": _responses(operation, components),
    }
    if operation.description:
        entry["description"] = operation.description
    parameters = [_parameter(item, samples, components) for item in operation.parameters]
    if operation.query is not None:
        members = operation.query.model_json_schema()["properties"]
        parameters += [_query_parameter(name, schema) for name, schema in members.items()]
    if parameters:
        entry["parameters"] = parameters
    if operation.body is not None:
        content: Json = {"schema": _describe_defaults(_ref(operation.body.schema))}
        if operation.body.examples:
            content["examples"] = {
                name: {"value": value} for name, value in operation.body.examples.items()
            }
        entry["requestBody"] = {"required": True, "content": {operation.body.media_type: content}}
    return entry


def _add_component(components: Json, kind: str, name: str, value: Json) -> Json:
    components[kind][name] = value
    return {"$ref": f"#/components/{kind}/{name}"}


def _security_schemes(site_url: str) -> Json:
    token = {
        "tokenUrl": f"{site_url}{TOKEN}",
        "scopes": {name: str(text) for name, text in SCOPES.items()},
    }
    code = {"authorizationUrl": f"{site_url}{AUTHORIZE}", "refreshUrl": token["tokenUrl"], **token}
    return {
        API_KEY_SCHEME: {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        BEARER_SCHEME: {"type": "http", "scheme": "bearer", "description": "The same API key."},
        TOKEN_SCHEME: {
            "type": "http",
            "scheme": "bearer",
            "description": "An access token for the MCP endpoint, as a person issues it.",
        },
        OAUTH_SCHEME: {
            "type": "oauth2",
            "description": "An access token of OAuth 2.1, with PKCE; `resource` (RFC 8707) names "
            f"the REST API or the MCP endpoint. Metadata: {site_url}{METADATA} (RFC 8414).",
            "flows": {"authorizationCode": code, "clientCredentials": token},
        },
    }


def _security(operation: AnyOperation) -> list[Json]:
    if operation.credential == "none":
        return []
    scopes = [operation.scope] if operation.scope else []
    schemes = (TOKEN_SCHEME,) if operation.audience == "mcp" else (API_KEY_SCHEME, BEARER_SCHEME)
    ways: list[Json] = [{scheme: scopes} for scheme in (*schemes, OAUTH_SCHEME)]
    return [*ways, {}] if operation.credential == "optional" else ways


def _parameter(parameter: Parameter, samples: Mapping[str, str], components: Json) -> Json:
    entry: Json = {
        "name": parameter.name,
        "in": parameter.location,
        "schema": dict(parameter.schema),
        "description": parameter.description,
    }
    example = parameter.example if parameter.example is not None else samples.get(parameter.name)
    if example is not None:
        entry["example"] = example
    if parameter.required or parameter.location == "path":
        entry["required"] = True
    if parameter.component:
        return _add_component(components, "parameters", parameter.component, entry)
    return entry


def _query_parameter(name: str, schema: Json) -> Json:
    schema = {key: value for key, value in schema.items() if key != "title"}
    description = schema.pop("description", "")
    examples = schema.pop("examples", [])
    entry: Json = {"name": name, "in": "query", "schema": non_null_schema(schema)}
    if description:
        entry["description"] = description
    if examples:
        entry["example"] = examples[0]
    return entry


def non_null_schema(schema: Schema) -> Schema:
    """Return the schema of a parameter or member without `null`: absent values are omitted."""
    choices = [choice for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) != 1:
        return schema
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**choices[0], **rest}


def _describe_defaults(value: Any) -> Any:
    """Move defaults of a schema into its descriptions: generated clients demand or send them."""
    match value:
        case {"default": default, **rest} if not isinstance(default, dict):
            text = default if isinstance(default, str) else json.dumps(default)
            about = f"{rest.get('description', '')} Default: `{text}`.".lstrip()
            return _describe_defaults(rest if default is None else {**rest, "description": about})
        case dict():
            return {name: _describe_defaults(item) for name, item in value.items()}
        case list() | tuple():
            return [_describe_defaults(item) for item in value]
    return value


def _responses(operation: AnyOperation, components: Json) -> Json:
    responses: Json = {}
    by_status: dict[int, list[Code]] = {}
    for code in problem_codes(operation):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    for status, codes in by_status.items():
        prefix = _error_name(status, operation.error_format).removesuffix("Error")
        name = prefix + "Or".join(code.title().replace("_", "") for code in codes)
        failure = {
            "description": "; ".join(PROBLEMS[code].message for code in codes),
            **_headers(_STATUS_HEADERS.get(status, {})),
            "content": _error_content(status, operation.error_format),
        }
        responses[str(status)] = _add_component(components, "responses", name, failure)
    for success in operation.responses:
        entry = _success_response(success)
        if "content" in (known := responses.get(str(success.status), {})):
            entry = {**known, "content": {**known["content"], **entry["content"]}}
        if success.component:
            entry = _add_component(components, "responses", success.component, entry)
        responses[str(success.status)] = entry
    return dict(sorted(responses.items()))


def _success_response(success: SuccessResponse) -> Json:
    entry: Json = {"description": success.description, **_headers(success.headers)}
    if success.schema is not None:
        value = success.example() if callable(success.example) else success.example
        example = {"example": value} if value is not None else {}
        schema = success.schema() if callable(success.schema) else success.schema
        json_content, text_content = (
            {"schema": _ref(schema), **example},
            {"schema": {"type": "string"}},
        )
        entry["content"] = {
            kind: json_content if "json" in kind else text_content for kind in success.media_types
        }
    if success.links:
        entry["links"] = dict(success.links)
    return entry


def _ref(schema: Schema) -> Schema:
    """Return a reference to the schema of a model, and any other schema as it is."""
    return component_ref(schema["title"], schema) if "title" in schema else dict(schema)


def _error_content(status: int, error_format: ErrorFormat) -> Json:
    if error_format == "page":
        return {kind: {"schema": {"type": "string"}} for kind in ("text/html", "text/markdown")}
    return {JSON: {"schema": {"$ref": f"#/components/schemas/{_error_name(status, error_format)}"}}}


def _error_name(status: int, error_format: ErrorFormat) -> str:
    is_plain = error_format == "postgrest" and status == PROBLEMS["unauthenticated"].status
    return _ERROR_NAMES["plain" if is_plain else error_format]


def _headers(descriptions: Mapping[str, str]) -> Json:
    headers = {
        name: {"description": description, "schema": {"type": "string"}}
        for name, description in descriptions.items()
    }
    return {"headers": headers} if headers else {}


def _hoist(value: Any, definitions: Json) -> Any:
    """Move each `$defs` to the components, and drop pydantic's titles and defaults of `null`.

    A default of `null` would make generated clients expect a member that is omitted.
    """
    match value:
        case dict():
            for name, schema in value.get("$defs", {}).items():
                definitions[name] = _hoist(schema, definitions)
            return {
                key: _hoist_member(key, item, definitions)
                for key, item in value.items()
                if key != "$defs"
                and not (key == "title" and isinstance(item, str))
                and not (key == "default" and item is None)
            }
        case list() | tuple():
            return [_hoist(item, definitions) for item in value]
    return value


def _hoist_member(key: str, item: Any, definitions: Json) -> Any:
    if key == "$ref":
        return item.replace("#/$defs/", "#/components/schemas/")
    is_data = key in ("const", "default", "enum", "example", "examples")  # values, not schemas
    return item if is_data else _hoist(item, definitions)
