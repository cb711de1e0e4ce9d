"""What is wrong with a posted form: every fault at once, by the field that it stands at."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from edge_api.schema.problems import sentence_of

Model = TypeVar("Model", bound=BaseModel)


class FormFaults(Exception):  # noqa: N818  a form is filled in wrongly, which is no error of ours
    """A form is not filled in well; `by_field` has one sentence for each field to mend."""

    def __init__(self, by_field: Mapping[str, str]) -> None:
        self.by_field = by_field
        super().__init__("; ".join(f"{name}: {fault}" for name, fault in by_field.items()))


def unfold(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return fields as they were typed: a form sends each line break as CR LF (HTML, 4.10.21)."""
    return {name: text.replace("\r\n", "\n") for name, text in fields.items()}


def check_form(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Return what a form says. Raises FormFaults."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        raise FormFaults({str(fault["loc"][0]): sentence_of(fault) for fault in faults}) from None
