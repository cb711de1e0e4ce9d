"""The checks that an operation declares, the same by whichever door it is asked."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from edge_api.api.operation import Operation
from edge_api.domain.access import Access
from edge_api.domain.actor import Actor
from edge_api.schema.paths import Door
from edge_api.schema.problems import Problem, sentence_of


def authorise(operation: Operation, access: Access, actor: Actor, door: Door = "rest") -> None:
    """Raise Problem unless the actor may ask for the operation."""
    if operation.admit is not None:
        operation.admit(actor)
    if operation.scope is not None:
        access.authorise(actor, operation.scope, door)


def check_query(model: type[BaseModel], given: Mapping[str, str]) -> BaseModel:
    """Return the checked query. Raises Problem `invalid` that names the faulty parameter."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise Problem("invalid", f"{fault['loc'][0]}: {sentence_of(fault)}") from None


def check_body(check: TypeAdapter[Any], value: Any) -> Any:
    """Return what the operation makes of a body. Raises Problem `invalid` that names the member."""
    try:
        return check.validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in fault["loc"]) or "body"
        raise Problem("invalid", f"{where}: {sentence_of(fault)}", sqlstate="PGRST102") from None
