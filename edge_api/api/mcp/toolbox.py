"""The tools that the declared operations are, and the calling of them. The SDK is not known here.

A call goes the way of its REST twin: the same scope, the same checks, the same function.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from edge_api.api.checking import authorise
from edge_api.api.mcp.inputs import Input, make_ask, rename, tool_inputs
from edge_api.api.operation import Ask, Operation
from edge_api.api.reply import Document, Reply
from edge_api.api.service import Service
from edge_api.api.tool import Json, Tool
from edge_api.domain.actor import Actor
from edge_api.schema.problems import Problem
from edge_api.schema.scopes import Scope


@dataclass(frozen=True, slots=True)
class BoundTool:
    """A tool with the operations that it stands on."""

    tool: Tool
    operations: Mapping[str, Operation]
    """By the value of the tool's chooser; of a tool without one, a single operation."""
    inputs: Mapping[str, Input]
    """By argument."""

    @property
    def scope(self) -> Scope | None:
        """What a credential needs, whichever operation is meant."""
        return self.tool.scope or self._first.scope

    @property
    def _first(self) -> Operation:
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
        success = self._first.successes[0].schema
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

    def _chosen(self, arguments: Mapping[str, Any]) -> Operation:
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


async def perform(operation: Operation, service: Service, ask: Ask) -> Any:
    """Return the JSON of what an operation answers. Raises Problem."""
    reply: Reply = await operation.do(service, ask)
    value = reply.value.body if isinstance(reply.value, Document) else reply.value
    return orjson.loads(value) if isinstance(value, bytes) else value


class Toolbox:
    """Every tool of a list of operations, in the order of the list."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        grouped: dict[str, dict[str, Operation]] = defaultdict(dict)
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


def _bind(tool: Tool, operations: Mapping[str, Operation]) -> BoundTool:
    return BoundTool(tool, operations, tool_inputs(tool, next(iter(operations.values()))))
