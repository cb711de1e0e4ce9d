"""MCP tools that call operations: their arguments and calls.

A call needs the scope, and runs the checks and the function, of its REST operation.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import orjson

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem
from edge_api.operation.model import (
    AnyOperation,
    Document,
    Json,
    OperationRequest,
    OperationResult,
    Schema,
    Service,
    Tool,
    authorise,
    check_body,
    check_query,
    object_schema,
)
from edge_api.operation.openapi import non_null_schema
from edge_api.schema.credentials import Scope

ParameterLocation = Literal["path", "query", "pairs", "body", "header"]
"""`pairs`: query parameters that no model declares; an object gives one for each member."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input of an operation."""

    name: str
    location: ParameterLocation
    schema: Schema
    required: bool = False
    default: int | str | None = None  # for an absent argument
    is_offered: bool = True  # whether a caller may set it


def operation_inputs(operation: AnyOperation) -> Iterator[Input]:
    """Yield the inputs of an operation, without headers."""
    for item in operation.parameters:
        schema = {**item.schema, "description": item.description}
        if item.location == "path":
            yield Input(item.name, "path", schema, required=True)
        elif item.location == "query":
            yield Input(item.name, "pairs", schema)
    if operation.query is not None:
        for name, schema in operation.query.model_json_schema()["properties"].items():
            yield Input(name, "query", non_null_schema(schema))
    if operation.body is not None:
        required = operation.body.schema.get("required", ())
        for name, schema in operation.body.schema["properties"].items():
            yield Input(name, "body", schema, required=name in required)


def tool_inputs(tool: Tool, operation: AnyOperation) -> Mapping[str, Input]:
    """Return the inputs of a tool by the names of its arguments."""
    known: dict[str, Input] = {}
    for item in operation_inputs(operation):
        schema, default = tool.schemas.get(item.name, item.schema), tool.defaults.get(item.name)
        if default is not None:
            schema = {**schema, "default": default}
        required = item.required or item.name in tool.required
        known[item.name] = replace(item, schema=schema, required=required, default=default)
    names = {name: name for name in known} if tool.arguments is None else tool.arguments
    inputs = {argument: known[name] for argument, name in names.items()}
    for name in tool.defaults:
        if name not in names.values():
            inputs[name] = replace(known[name], is_offered=False)
    for argument, header in tool.headers.items():
        inputs[argument] = Input(header.header, "header", header.schema)
    return inputs


def make_request(
    operation: AnyOperation, inputs: Mapping[str, Input], arguments: Mapping[str, Any], actor: Actor
) -> OperationRequest[Any, Any]:
    """Return a request with the arguments, validated as in REST. Raises Problem `invalid`."""
    parts: defaultdict[ParameterLocation, list[tuple[str, Any]]] = defaultdict(list)
    for argument, item in inputs.items():
        value = arguments.get(argument)
        value = item.default if value is None else value
        if value == "" and item.required and item.location == "query":  # the same as absent
            value = None
        if value is not None or (item.location == "body" and argument in arguments):
            parts[item.location] += _named_values(argument, item, value)
        elif item.required and item.location != "body":  # `check_body` reports missing members
            raise Problem("invalid", f"{argument}: is required")
    path, headers = dict(parts["path"]), dict(parts["header"])
    query = operation.query and check_query(operation.query, dict(parts["query"]))
    body = operation.body and check_body(operation.body.check, dict(parts["body"]))
    return OperationRequest(actor, "", path, query, parts["pairs"], body, headers, "mcp")


def _url_text(argument: str, value: Any) -> str:
    """Return a value as text for the URL of a request. Raises Problem `invalid`."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # JSON knows one kind of number, and 5.0 is an integer
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise Problem("invalid", f"{argument}: must be a string or an integer")


def _named_values(argument: str, item: Input, value: Any) -> Sequence[tuple[str, Any]]:
    """Return an argument as pairs of name and value; a list in a query has one for each item."""
    if item.location == "body":
        return [(item.name, value)]
    if item.location != "pairs" or not isinstance(value, dict):
        return [(item.name, _url_text(argument, value))]
    return [
        (member, _url_text(f"{argument}.{member}", each))
        for member, items in value.items()
        for each in (items if isinstance(items, list) else [items])
    ]


@dataclass(frozen=True, slots=True)
class BoundTool:
    """A tool with its operations."""

    tool: Tool
    operations: Mapping[str, AnyOperation]
    """The operations by the value of the tool's discriminator; without one, a single operation."""
    inputs: Mapping[str, Input]  # by the names of the arguments

    @property
    def scope(self) -> Scope | None:
        """The scope that every call needs."""
        return self.tool.scope or self._first_operation.scope

    @property
    def _first_operation(self) -> AnyOperation:
        return next(iter(self.operations.values()))

    @property
    def _offered(self) -> Mapping[str, Input]:
        return {name: item for name, item in self.inputs.items() if item.is_offered}

    @property
    def input_schema(self) -> Json:
        """The JSON Schema of the arguments."""
        properties = {name: simplify_schema(item.schema) for name, item in self._offered.items()}
        required = [name for name, item in self._offered.items() if item.required]
        if self.tool.discriminator:
            choice = {"type": "string", "enum": list(self.operations), "description": "Which one."}
            properties = {self.tool.discriminator: choice, **properties}
            required = [self.tool.discriminator, *required]
        return object_schema(properties, *required, additionalProperties=False)

    @property
    def output_schema(self) -> Json:
        """The JSON Schema of the result."""
        success = self._first_operation.responses[0].schema
        assert success is not None  # noqa: S101  a tool has a result
        result = self.tool.output or (success() if callable(success) else success)
        schema: Json = simplify_schema(result)
        return schema

    async def call(self, service: Service, actor: Actor, arguments: Mapping[str, Any]) -> Json:
        """Return the result of a call. Raises Problem, like REST."""
        if self.scope is not None:
            service.authenticator.authorise(actor, self.scope, "mcp")
        discriminator = self.tool.discriminator
        known = [discriminator, *self._offered] if discriminator else self._offered
        for name in arguments:
            if name not in known:
                raise Problem(
                    "invalid", f"{name[:100]}: is no argument; known are {', '.join(known)}"
                )
        operation = self._first_operation
        if discriminator:
            choice = arguments.get(discriminator)
            if not isinstance(choice, str) or choice not in self.operations:
                raise Problem(
                    "invalid", f"{discriminator}: must be one of {', '.join(self.operations)}"
                )
            operation = self.operations[choice]
        authorise(operation, service.authenticator, actor, "mcp")
        try:
            request = make_request(operation, self.inputs, arguments, actor)
            answer = await run_operation(operation, service, request)
        except Problem as problem:
            # The message names the operation's input, which the tool may offer by another name.
            name, _, rest = problem.message.partition(": ")
            for argument, item in self.inputs.items():
                if item.name == name and rest:
                    problem.message = f"{argument}: {rest}"
            for argument, header in self.tool.headers.items():
                problem.message = problem.message.replace(header.header, argument)
            raise
        result: Json = self.tool.to_result(answer)
        return result


def simplify_schema(schema: Any) -> Any:
    """Return a JSON Schema without titles and patterns, which are of little use for a model.

    Generated titles repeat names, and some clients refuse patterns that look ahead; a wrong value
    is refused in words anyway.
    """
    match schema:
        case Mapping():
            return {
                name: simplify_schema(item)
                for name, item in schema.items()
                # A string is that keyword; else it is the schema of a property of that name.
                if not (name in ("title", "pattern") and isinstance(item, str))
            }
        case list() | tuple():
            return [simplify_schema(item) for item in schema]
    return schema


async def run_operation(
    operation: AnyOperation, service: Service, request: OperationRequest[Any, Any]
) -> Any:
    """Return the JSON of an operation's answer. Raises Problem."""
    result: OperationResult = await operation.handler(service, request)
    value = result.value.body if isinstance(result.value, Document) else result.value
    return orjson.loads(value) if isinstance(value, bytes) else value


def bind_tools(operations: Iterable[AnyOperation]) -> Mapping[str, BoundTool]:
    """Return every tool of a list of operations by its name, in the order of the list."""
    grouped: dict[str, dict[str, AnyOperation]] = defaultdict(dict)
    tools: dict[str, Tool] = {}
    for operation in operations:
        for tool in operation.tools:
            choice = operation.path.rpartition("/")[2] if tool.discriminator else ""
            grouped[tool.name][choice] = operation
            tools.setdefault(tool.name, tool)
    return {
        name: BoundTool(tool, chosen, tool_inputs(tool, next(iter(chosen.values()))))
        for name, tool in tools.items()
        if (chosen := grouped[name])
    }
