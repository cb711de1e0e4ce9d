"""What an operation takes, as the arguments of a tool: each by its name, its place and its schema.

Made from the declarations that the operation's REST form is made from. The protocol is not known
here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from edge_api.api.checking import check_body, check_query
from edge_api.api.openapi import present_schema
from edge_api.api.operation import Ask, Operation, Schema
from edge_api.api.tool import Tool
from edge_api.domain.actor import Actor
from edge_api.schema.problems import Problem

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


def operation_inputs(operation: Operation) -> Iterator[Input]:
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


def tool_inputs(tool: Tool, operation: Operation) -> Mapping[str, Input]:
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
    operation: Operation, inputs: Mapping[str, Input], arguments: Mapping[str, Any], actor: Actor
) -> Ask:
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
    return Ask(actor, "", parts.path, query, parts.pairs, body, parts.headers, "mcp")


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
