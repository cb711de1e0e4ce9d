"""The form that asks for access: what the edge hands to it, and what comes back to a person."""

import re
from typing import get_args

import jinja2
import pytest

from edge_api.access.service import RequestedType

FIELDS = ("name", "email", "purpose", "type")
HOSTILE = "</textarea></option>\"'><script>alert(1)</script>"


def render(
    templates: jinja2.Environment,
    values: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
) -> str:
    """Return the form for what was typed and what is wrong with it."""
    given = {"values": values, "errors": errors}
    return templates.get_template("access_form.html").render(
        {name: value for name, value in given.items() if value is not None}
    )


def control(form: str, field: str) -> str:
    """Return the opening tag of a field."""
    found = re.search(rf'<(?:input|select|textarea)[^>]* name="{field}"[^>]*>', form)
    assert found
    return found[0]


def test_empty_form(templates: jinja2.Environment) -> None:
    """Without values and errors the form is empty, blames nobody, and asks for an API key."""
    form = render(templates)

    assert 'id="access-form" method="post" action="/contact/access/">' in form
    assert re.findall(r"role=|aria-invalid|autofocus|fault", form) == []
    assert '<option value="api_key" selected>' in form


@pytest.mark.parametrize("field", FIELDS)
def test_fields_are_labelled(templates: jinja2.Environment, field: str) -> None:
    """Each field has a label; what could be left empty, but for the address, must not be."""
    form = render(templates)

    assert f'<label for="access-{field}">' in form
    assert f'id="access-{field}"' in control(form, field)
    assert (" required" in control(form, field)) == (field in {"name", "purpose"})


@pytest.mark.parametrize("field", ["name", "email", "purpose"])
def test_no_field_cuts_what_is_typed(templates: jinja2.Environment, field: str) -> None:
    """The service names the limit and keeps the text."""
    assert "maxlength" not in control(render(templates), field)


def test_each_type_of_credential_is_offered(templates: jinja2.Environment) -> None:
    """The choice has every type of credential that a request may name."""
    assert re.findall(r'<option value="(\w+)"', render(templates)) == [*get_args(RequestedType)]


@pytest.mark.parametrize("field", FIELDS)
def test_an_error_is_at_its_field(templates: jinja2.Environment, field: str) -> None:
    """A fault's sentence is tied to its field, which takes the focus; the form says it failed."""
    form = render(templates, {}, {field: "is <not> right"})

    assert f'<p class="fault" id="access-{field}-fault">is &lt;not&gt; right</p>' in form
    tied = f'aria-invalid="true" aria-describedby="access-{field}-fault" autofocus'
    assert tied in control(form, field)
    assert form.count("autofocus") == form.count("aria-invalid") == 1
    assert '<p class="fault" role="alert">Nothing was sent yet.' in form


def test_an_error_of_the_whole_form_takes_the_focus(templates: jinja2.Environment) -> None:
    """An error of no field is shown above the form, where the reader is led."""
    form = render(templates, {}, {"form": "Too many messages; try again in 5 minutes."})

    alert = '<p class="fault" role="alert" tabindex="-1" autofocus>Too many messages;'
    assert alert in form
    assert "aria-invalid" not in form


def test_typed_values_are_kept(templates: jinja2.Environment) -> None:
    """Values come back as typed, a leading empty line and the choice included."""
    typed = {"name": "Ada", "email": "ada@x", "purpose": "\nHello\n", "type": "access_token"}
    form = render(templates, typed, {"email": "?"})

    assert 'value="Ada"' in control(form, "name")
    assert 'value="ada@x"' in control(form, "email")
    assert '<option value="access_token" selected>' in form
    assert form.count(" selected") == 1
    assert re.search(r"<textarea[^>]*>\n\nHello\n</textarea>", form)


def test_hostile_values_stay_text(templates: jinja2.Environment) -> None:
    """Nothing that was typed, and no sentence about it, becomes markup."""
    form = render(templates, dict.fromkeys(FIELDS, HOSTILE), dict.fromkeys(FIELDS, HOSTILE))

    assert "<script" not in form
    assert form.count("</textarea>") == form.count("</select>") == 1
