"""The tools that the declared operations are: their arguments, and the calling of them.

A call goes the way of its REST twin: the same scope, the same checks, the same function.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import orjson

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem
from edge_api.operation.model import (
    AnyOperation,
    Json,
    OperationRequest,
    Schema,
    Tool,
    authorise,
    check_body,
    check_query,
)
from edge_api.operation.openapi import present_schema
from edge_api.operation.result import Document, OperationResult
from edge_api.operation.service import Service
from edge_api.schema.credentials import Scope

Place = Literal["path", "query", "pairs", "body", "header"]
"""`pairs`: a query parameter that no model declares. An object there is taken apart."""


@dataclass(frozen=True, slots=True)
class Input:
    """One thing that an operation takes."""

    name: str
    place: Place
    schema: Schema
    required: bool = False
    preset: int | str | None = None
    """What is asked for where the caller does not say."""
    is_offered: bool = True
    """Whether a caller may say anything."""


def operation_inputs(operation: AnyOperation) -> Iterator[Input]:
    """Yield what an operation takes, but for headers, which are HTTP's."""
    for item in operation.parameters:
        schema = {**item.schema, "description": item.sentence}
        if item.place == "path":
            yield Input(item.name, "path", schema, required=True)
        elif item.place == "query":
            yield Input(item.name, "pairs", schema)
    if operation.query is not None:
        for name, schema in operation.query.model_json_schema()["properties"].items():
            yield Input(name, "query", present_schema(schema))
    if operation.body is not None:
        required = operation.body.schema.get("required", ())
        for name, schema in operation.body.schema["properties"].items():
            yield Input(name, "body", schema, required=name in required)


def tool_inputs(tool: Tool, operation: AnyOperation) -> Mapping[str, Input]:
    """Return what a tool takes by the names of its arguments."""
    known = {item.name: _adapt(tool, item) for item in operation_inputs(operation)}
    names = {name: name for name in known} if tool.arguments is None else tool.arguments
    inputs = {argument: known[name] for argument, name in names.items()}
    for name in tool.defaults:
        if name not in names.values():
            inputs[name] = replace(known[name], is_offered=False)
    for argument, header in tool.headers.items():
        inputs[argument] = Input(header.header, "header", header.schema)
    return inputs


def _adapt(tool: Tool, given: Input) -> Input:
    """Return an input with what the tool says about it."""
    schema, preset = tool.schemas.get(given.name, given.schema), tool.defaults.get(given.name)
    if preset is not None:
        schema = {**schema, "default": preset}
    required = given.required or given.name in tool.required
    return replace(given, schema=schema, required=required, preset=preset)


@dataclass(slots=True)
class _Parts:
    """What an operation is asked, while it is put together."""

    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def add(self, argument: str, item: Input, value: Any) -> None:
        """Put a value where the operation looks for it. Raises Problem `invalid`."""
        match item.place:
            case "body":
                self.body[item.name] = value
            case "pairs":
                self.pairs += _pairs(argument, item.name, value)
            case "path":
                self.path[item.name] = _text(argument, value)
            case "query":
                self.query[item.name] = _text(argument, value)
            case "header":
                self.headers[item.name] = _text(argument, value)


def make_ask(
    operation: AnyOperation, inputs: Mapping[str, Input], arguments: Mapping[str, Any], actor: Actor
) -> OperationRequest[Any, Any]:
    """Return what a tool's arguments ask of an operation, checked as its REST form is.

    Raises Problem `invalid` that names the faulty argument.
    """
    parts = _Parts()
    for argument, item in inputs.items():
        value = arguments.get(argument)
        value = item.preset if value is None else value
        if value == "" and item.required and item.place == "query":  # as good as nothing
            value = None
        if value is not None or (item.place == "body" and argument in arguments):
            parts.add(argument, item, value)
        elif item.required and item.place != "body":  # a body tells what it lacks by itself
            raise Problem("invalid", f"{argument}: is required")
    query = None if operation.query is None else check_query(operation.query, parts.query)
    body = None if operation.body is None else check_body(operation.body.check, parts.body)
    return OperationRequest(actor, "", parts.path, query, parts.pairs, body, parts.headers, "mcp")


def rename(problem: Problem, inputs: Mapping[str, Input]) -> None:
    """Let a problem name the argument, where the operation calls it something else."""
    name, _, rest = problem.sentence.partition(": ")
    for argument, item in inputs.items():
        if item.name == name and rest:
            problem.sentence = f"{argument}: {rest}"


def _text(argument: str, value: Any) -> str:
    """Return a value as a URL would have it."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # JSON knows one kind of number, and 5.0 is an integer
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise Problem("invalid", f"{argument}: must be a string or an integer")


def _pairs(argument: str, name: str, value: Any) -> Sequence[tuple[str, str]]:
    """Return the pairs of a query string: of an object, one for each member and each of a list."""
    if not isinstance(value, dict):
        return [(name, _text(argument, value))]
    return [
        (member, _text(f"{argument}.{member}", item))
        for member, items in value.items()
        for item in (items if isinstance(items, list) else [items])
    ]


@dataclass(frozen=True, slots=True)
class BoundTool:
    """A tool with the operations that it stands on."""

    tool: Tool
    operations: Mapping[str, AnyOperation]
    """By the value of the tool's chooser; of a tool without one, a single operation."""
    inputs: Mapping[str, Input]
    """By argument."""

    @property
    def scope(self) -> Scope | None:
        """What a credential needs, whichever operation is meant."""
        return self.tool.scope or self._first.scope

    @property
    def _first(self) -> AnyOperation:
        return next(iter(self.operations.values()))

    @property
    def _offered(self) -> Mapping[str, Input]:
        return {name: item for name, item in self.inputs.items() if item.is_offered}

    @property
    def input_schema(self) -> Json:
        """The JSON Schema of the arguments."""
        properties = {name: for_models(item.schema) for name, item in self._offered.items()}
        required = [name for name, item in self._offered.items() if item.required]
        if self.tool.chooser:
            choice = {"type": "string", "enum": list(self.operations)}
            properties = {self.tool.chooser: choice, **properties}
            required = [self.tool.chooser, *required]
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    @property
    def output_schema(self) -> Json:
        """The JSON Schema of the result."""
        success = self._first.responses[0].schema
        assert success is not None  # noqa: S101  what answers nothing is no tool
        schema: Json = for_models(self.tool.output or success)
        return schema

    async def call(self, service: Service, actor: Actor, arguments: Mapping[str, Any]) -> Json:
        """Return the result of a call. Raises Problem, as the operation's REST form does."""
        if self.scope is not None:
            service.access.authorise(actor, self.scope, "mcp")
        self._refuse_unknown(arguments)
        operation = self._chosen(arguments)
        authorise(operation, service.access, actor, "mcp")
        try:
            ask = make_ask(operation, self.inputs, arguments, actor)
            answer = await perform(operation, service, ask)
        except Problem as problem:
            rename(problem, self.inputs)
            raise
        result: Json = self.tool.present(answer)
        return result

    def _chosen(self, arguments: Mapping[str, Any]) -> AnyOperation:
        chooser = self.tool.chooser
        if not chooser:
            return self._first
        choice = arguments.get(chooser)
        if not isinstance(choice, str) or choice not in self.operations:
            raise Problem("invalid", f"{chooser}: must be one of {', '.join(self.operations)}")
        return self.operations[choice]

    def _refuse_unknown(self, arguments: Mapping[str, Any]) -> None:
        """Raise Problem `invalid` for an argument that would count for nothing."""
        known = [*([self.tool.chooser] if self.tool.chooser else []), *self._offered]
        for name in arguments:
            if name not in known:
                raise Problem(
                    "invalid", f"{name[:100]}: is no argument; known are {', '.join(known)}"
                )


def for_models(schema: Any) -> Any:
    """Return a JSON Schema without what costs a model much and tells it little.

    Generated titles repeat names, and patterns are for validators: some clients refuse those that
    look ahead, and what does not fit is refused in words anyway.
    """
    match schema:
        case Mapping():
            kept = (pair for pair in schema.items() if not _is_noise(*pair))
            return {name: for_models(item) for name, item in kept}
        case list() | tuple():
            return [for_models(item) for item in schema]
    return schema


def _is_noise(name: str, value: Any) -> bool:
    return name in ("title", "pattern") and isinstance(value, str)  # a member's schema is no string


async def perform(
    operation: AnyOperation, service: Service, ask: OperationRequest[Any, Any]
) -> Any:
    """Return the JSON of what an operation answers. Raises Problem."""
    reply: OperationResult = await operation.handler(service, ask)
    value = reply.value.body if isinstance(reply.value, Document) else reply.value
    return orjson.loads(value) if isinstance(value, bytes) else value


class Toolbox:
    """Every tool of a list of operations, in the order of the list."""

    def __init__(self, operations: Iterable[AnyOperation]) -> None:
        grouped: dict[str, dict[str, AnyOperation]] = defaultdict(dict)
        tools: dict[str, Tool] = {}
        for operation in operations:
            for tool in operation.tools:
                choice = operation.path.rpartition("/")[2] if tool.chooser else ""
                grouped[tool.name][choice] = operation
                tools.setdefault(tool.name, tool)
        self.tools: Mapping[str, BoundTool] = {
            name: _bind(tool, grouped[name]) for name, tool in tools.items()
        }

    def offered(self, actor: Actor) -> list[BoundTool]:
        """Return the tools that the actor's scopes allow; some need none beside the door's."""
        return [tool for tool in self.tools.values() if tool.scope in (None, *actor.scopes)]


def _bind(tool: Tool, operations: Mapping[str, AnyOperation]) -> BoundTool:
    return BoundTool(tool, operations, tool_inputs(tool, next(iter(operations.values()))))
