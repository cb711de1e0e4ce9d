"""The operations of writing: REST and MCP tools for sources, drafts, pictures and publication."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from edge_api.db.problems import Problem
from edge_api.operation.model import (
    ADDITIVE,
    AnyOperation,
    Body,
    HeaderArgument,
    Operation,
    OperationRequest,
    OperationResult,
    Parameter,
    Service,
    SuccessResponse,
    Tool,
    ToolHints,
    output_schema,
)
from edge_api.schema.paths import REST_PREFIX
from edge_api.schema.writing import (
    MAX_PICTURE_BYTES,
    MAX_TEXT_BYTES,
    WriteRequest,
)
from edge_api.schema.writing import Operation as Write
from edge_api.writing.models import (
    Draft,
    Findings,
    Picture,
    Publication,
    SourceAnswer,
    Sources,
    StoredPicture,
    Text,
)
from edge_api.writing.service import Writing

PATH: Final = f"{REST_PREFIX}/sources"
TAG: Final = "writing"
IF_MATCH: Final = "If-Match"
_MEMBERS: Final[Mapping[Write, set[str]]] = {
    "check": {"findings"},
    "list": {"sources"},
    "picture": {"path"},
}
"""Members of the answer; those of an operation without an entry are a source and its findings."""
_WRITES: Final = ToolHints(read_only=False, destructive=True, idempotent=True, open_world=False)


async def _carry_out(
    operation: Write, service: Service, request: OperationRequest[Any, Any]
) -> OperationResult:
    """Send a request to the watcher in the name of the caller. Raises Problem.

    The members of bodies have the names that `WriteRequest` gives them, and those of answers the
    names of `WriteAnswer`.
    """
    actor = request.actor
    assert actor is not None  # noqa: S101  each operation requires a credential
    base = request.headers.get(IF_MATCH)
    if base is not None:
        found = re.fullmatch(r'\s*"?([0-9a-f]{40})"?\s*', base)
        if found is None:
            raise Problem("invalid", f"{IF_MATCH}: send the `version` that you read")
        base = found[1]
    asked = {
        "operation": operation,
        "author": actor.name,
        "may_publish": "posts:publish" in actor.scopes,
        "asked_at": service.clock().replace(microsecond=0),
        "base": base,
        **request.path,
        **(request.body.model_dump(exclude_none=True) if request.body else {}),
    }
    answer = await service[Writing].ask(WriteRequest.model_validate(asked), actor)
    value = answer.model_dump(
        mode="json",
        exclude_none=True,
        include=_MEMBERS.get(operation, {"source", "findings"}),
    )
    headers = {"ETag": f'"{answer.version}"'} if answer.source else {}
    return OperationResult(value, 201 if operation == "picture" else 200, headers)


_VERSION: Final = Parameter(
    IF_MATCH,
    "header",
    {"type": "string"},
    "The version that was read, as `ETag` or `version` has it: without it a source that is there "
    "is not changed (428), and with another one neither (412).",
)
_SLUG: Final = Parameter(
    "slug",
    "path",
    {"type": "string", "maxLength": 200},
    "The post's name.",
    required=True,
    example="two-winters",
)
_VERSION_ARGUMENT: Final = MappingProxyType(
    {
        "version": HeaderArgument(
            IF_MATCH,
            {
                "type": "string",
                "pattern": "^[0-9a-f]{40}$",
                "description": "The `version` that you read: needed to change what is there.",
            },
        )
    }
)
_SOURCE_EXAMPLE: Final = {
    "slug": "two-winters",
    "title": "Two winters",
    "state": "draft",
    "date": "2025-11-20T09:30:00Z",
    "author": "Claude",
    "version": "66e4022318579b4f4b6dc4c40ee7c374098511c7",
    "is_changed": False,
    "url": "https://journal.example/journal/two-winters/",
    "markdown": "---\ntitle: Two winters\nslug: two-winters\ndate: 2025-11-20T09:30:00Z\n"
    "status: draft\n---\n\nThe store has stood.\n",
}
_FINDING_EXAMPLE: Final = {
    "line": 6,
    "column": 1,
    "severity": "warning",
    "message": "the picture has no description; say what it shows",
}
_SHOWN: Final = SuccessResponse(
    200,
    "The source as it is stored now",
    output_schema(SourceAnswer),
    {"source": _SOURCE_EXAMPLE, "findings": [_FINDING_EXAMPLE]},
    headers=MappingProxyType({"ETag": "The version of the source; send it as If-Match."}),
)
_CHANGES: Final = ("not_found", "conflict", "stale", "locked", "unnamed", "unavailable")


def _body(model: type[BaseModel], most: int, **examples: dict[str, Any]) -> Body[Any]:
    return Body(TypeAdapter(model), model.model_json_schema(), examples, max_bytes=most)


_BASE: Final[AnyOperation] = Operation(
    name="",
    path=PATH,
    summary="",
    handler=partial(_carry_out, "list"),
    responses=(),
    tag=TAG,
    credential="required",
    scope="posts:draft",
    error_format="writing",
)
# The examples can be sent one after another: each names the version that the one before stored.
_TEXT_EXAMPLE: Final = {name: _SOURCE_EXAMPLE[name] for name in ("slug", "markdown")}
OPERATIONS: tuple[AnyOperation, ...] = (
    replace(
        _BASE,
        name="check_post",
        method="POST",
        path=f"{PATH}/check",
        summary="Check a text, and store nothing",
        description="Returns what `check` would say of it, as if it were published.",
        handler=partial(_carry_out, "check"),
        body=_body(Text, 3 * MAX_TEXT_BYTES, example=_TEXT_EXAMPLE),
        responses=(
            SuccessResponse(
                200, "The findings", output_schema(Findings), {"findings": [_FINDING_EXAMPLE]}
            ),
        ),
        problems=("conflict", "unavailable"),
        tools=(
            Tool(
                "check_post",
                "Check a text",
                "Return faults of a Markdown text, each with its line and what to do. Nothing is "
                "stored.",
            ),
        ),
    ),
    replace(
        _BASE,
        name="list_sources",
        summary="List drafts and scheduled posts",
        handler=partial(_carry_out, "list"),
        responses=(
            SuccessResponse(
                200,
                "Drafts by credentials first",
                output_schema(Sources),
                {"sources": [{k: v for k, v in _SOURCE_EXAMPLE.items() if k != "markdown"}]},
            ),
        ),
        problems=("unavailable",),
        tools=(
            Tool(
                "list_sources",
                "List drafts",
                "List drafts and scheduled posts, with who wrote them.",
            ),
        ),
    ),
    replace(
        _BASE,
        name="get_source",
        path=f"{PATH}/{{slug}}",
        summary="Get a post as its author wrote it",
        handler=partial(_carry_out, "get"),
        parameters=(_SLUG,),
        responses=(_SHOWN,),
        problems=("not_found", "conflict", "unavailable"),
        tools=(
            Tool(
                "get_source",
                "Get a post's source",
                "Return the Markdown of a draft or a published post, its version, and faults.",
            ),
        ),
    ),
    replace(
        _BASE,
        name="save_draft",
        method="POST",
        summary="Save a draft",
        description="A new draft, or another version of one. A draft of a credential waits at the "
        "desk until it is published or binned; it changes nothing that a public address shows.",
        handler=partial(_carry_out, "save"),
        parameters=(_VERSION,),
        body=_body(Draft, 3 * MAX_TEXT_BYTES, example=_TEXT_EXAMPLE),
        responses=(_SHOWN,),
        problems=("forbidden", "conflict", "stale", "unnamed", "unavailable"),
        tools=(
            Tool(
                "save_draft",
                "Save a draft",
                "Store a Markdown text as a draft. The owner reads it before it is published.",
                hints=_WRITES,
                headers=_VERSION_ARGUMENT,
            ),
        ),
    ),
    replace(
        _BASE,
        name="add_picture",
        method="POST",
        path=f"{PATH}/pictures",
        summary="Add a picture to a draft",
        description="Metadata such as the place is removed. No picture is replaced.",
        handler=partial(_carry_out, "picture"),
        body=_body(
            Picture,
            MAX_PICTURE_BYTES * 4 // 3 + 1024,
            example={
                "name": "store.png",
                "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEA"
                "HLCMmQAAAABJRU5ErkJggg==",
            },
        ),
        responses=(
            SuccessResponse(
                201,
                "The picture is stored",
                output_schema(StoredPicture),
                {"path": "/images/store.png"},
            ),
        ),
        problems=("unavailable",),
        tools=(
            Tool(
                "add_picture",
                "Add a picture",
                "Store a picture, and return the path that a text names it by: "
                "`![what it shows](/images/store.jpg)`.",
                hints=ADDITIVE,
                schemas={
                    "data": {
                        "type": "string",
                        "description": "A JPEG, PNG, GIF or WebP of at most 1.5 MB, in base64. A "
                        f"larger one, of at most 20 MB, goes by REST: POST {PATH}/pictures.",
                    }
                },
            ),
        ),
    ),
    replace(
        _BASE,
        name="publish_post",
        method="POST",
        path=f"{PATH}/{{slug}}/publish",
        summary="Publish a draft, now or later",
        handler=partial(_carry_out, "publish"),
        scope="posts:publish",
        parameters=(_SLUG, replace(_VERSION, example=f'"{_SOURCE_EXAMPLE["version"]}"')),
        body=_body(Publication, 1024, now={}, later={"at": "2027-03-01T07:00:00Z"}),
        responses=(_SHOWN,),
        problems=_CHANGES,
        tools=(
            Tool(
                "publish_post",
                "Publish a draft",
                "Publish the version of a draft that you read, so that everybody can read it.",
                hints=_WRITES,
                headers=_VERSION_ARGUMENT,
            ),
        ),
    ),
    replace(
        _BASE,
        name="withdraw_post",
        method="POST",
        path=f"{PATH}/{{slug}}/withdraw",
        summary="Take a published post off the site",
        description="It is a draft again, and its address answers 410.",
        handler=partial(_carry_out, "withdraw"),
        scope="posts:publish",
        parameters=(
            _SLUG,
            replace(_VERSION, example='"e51e41edb0b511ce0b22ec6df0241f1af7068d7b"'),
        ),
        responses=(_SHOWN,),
        problems=_CHANGES,
        tools=(
            Tool(
                "withdraw_post",
                "Withdraw a post",
                "Make a published post a draft again, so that nobody can read it.",
                hints=_WRITES,
                headers=_VERSION_ARGUMENT,
            ),
        ),
    ),
)
