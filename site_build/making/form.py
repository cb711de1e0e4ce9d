"""The contact form's template, which the edge renders anew for whoever fills it in badly.

The edge has Jinja and nothing else: neither `asset()` and the site's names, nor other templates.
What it cannot show is found here, at the build, and not by a reader.
"""

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, Template, TemplateSyntaxError, meta

from edge_api.schema.index import FORM_CLOSING, FORM_FIELDS, FORM_OPENING, FORM_TEMPLATE
from site_build import addresses
from site_build.faults import BuildError

PAGE = addresses.name_file(addresses.locate_page("contact"))
"""The file that the edge shows the form in."""

_GIVEN = frozenset({"values", "faults"})
"""What the edge gives the template: two mappings of texts by the name of a field."""

_SAMPLES: Sequence[Mapping[str, Mapping[str, str]]] = (
    {"values": {}, "faults": {"form": "Try again later."}},
    {
        "values": dict.fromkeys(FORM_FIELDS, "Typed"),
        "faults": dict.fromkeys(FORM_FIELDS, "Too long."),
    },
)
"""Each key is there in one and missing in the other, as happens at the edge."""


@dataclass(frozen=True, slots=True)
class Form:
    """A template that the edge can render."""

    path: Path
    source: str

    def write(self, folder: Path) -> None:
        """Put the template where the edge finds it."""
        (folder / FORM_TEMPLATE).write_text(self.source, encoding="utf-8")


def check_page(page: str) -> None:
    """Raise BuildError when the contact page has no place for the form."""
    _, opening, rest = page.partition(FORM_OPENING)
    if not opening or FORM_CLOSING not in rest:
        raise BuildError(
            f"/{PAGE} has no place for the form that a reader must mend; in its template "
            f"put {FORM_OPENING} before and {FORM_CLOSING} after the include of {FORM_TEMPLATE}"
        )


def find_form(folders: Sequence[Path]) -> Form | None:
    """Return the form of the first folder of templates that has one, or None.

    Raises BuildError when the edge could not render it.
    """
    for folder in folders:
        path = folder / FORM_TEMPLATE
        if path.is_file():
            return _read(path)
    return None


def _read(path: Path) -> Form:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    try:
        source = path.read_text(encoding="utf-8")
        _check_names(path, environment, source)
        template = environment.from_string(source)
    except UnicodeDecodeError as error:
        raise BuildError(f"{path} is not UTF-8; save it as UTF-8") from error
    except TemplateSyntaxError as error:
        raise _explain(path, error.lineno, error.message) from error
    for sample in _SAMPLES:
        _try(path, template, sample)
    return Form(path, source)


def _check_names(path: Path, environment: Environment, source: str) -> None:
    """Raise BuildError when the template asks for what only the build has."""
    tree = environment.parse(source)
    if any(True for _ in meta.find_referenced_templates(tree)):
        raise BuildError(
            f"{path} takes in another template, which the edge does not have; write it out there"
        )
    foreign = meta.find_undeclared_variables(tree) - _GIVEN - environment.globals.keys()
    if foreign:
        raise BuildError(
            f"{path} asks for {', '.join(sorted(foreign))}, but the edge gives it nothing besides "
            "values and faults; do without"
        )


def _try(path: Path, template: Template, sample: Mapping[str, object]) -> None:
    try:
        template.render(sample)
    except Exception as error:
        # Whatever its expressions trip over, its author can only be told where.
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == "<template>"]
        raise _explain(path, lines[-1] if lines else None, str(error)) from error


def _explain(path: Path, line: int | None, fault: str | None) -> BuildError:
    place = f"{path}:{line}" if line else str(path)
    return BuildError(f"{place}: {fault}; the edge renders this form with plain Jinja, so mend it")
