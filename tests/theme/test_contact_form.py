"""The contact form: what the edge hands to it, and what comes back to a person."""

import re

import jinja2
import pytest

from edge_api.db.tables import LeadRow

FIELDS = ("name", "email", "budget_tier", "message")
TIERS = ["Not decided yet", "Up to 5,000 euros", "More"]
HOSTILE = "</textarea></option>\"'><script>alert(1)</script>"


def render(
    templates: jinja2.Environment,
    values: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
    tiers: list[str] | None = TIERS,
) -> str:
    """Return the form for what was typed, what is wrong with it and the budgets of the site."""
    given = {"values": values, "errors": errors, "BUDGET_TIERS": tiers}
    return templates.get_template("contact_form.html").render(
        {name: value for name, value in given.items() if value is not None}
    )


def control(form: str, field: str) -> str:
    """Return the opening tag of a field."""
    found = re.search(rf'<(?:input|select|textarea)[^>]* name="{field}"[^>]*>', form)
    assert found
    return found[0]


def test_empty_form(templates: jinja2.Environment) -> None:
    """Without values and errors the form is empty and blames nobody."""
    form = render(templates)

    assert '<form class="contact-form" id="contact-form" method="post" action="/contact/"' in form
    assert re.findall(r"role=|aria-invalid|autofocus|fault", form) == []
    assert 'value=""' in control(form, "name")
    assert re.search(r"<textarea[^>]*>\n</textarea>", form)


@pytest.mark.parametrize("field", FIELDS)
def test_fields_are_labelled_and_required(templates: jinja2.Environment, field: str) -> None:
    """Each field has a label of its own and must be filled in."""
    form = render(templates)

    assert f'<label for="{field}">' in form
    assert f'id="{field}"' in control(form, field)
    assert " required" in control(form, field)


def test_consent_is_asked_and_not_taken(templates: jinja2.Environment) -> None:
    """The box is optional and empty; its sentence is sent along as it is read."""
    form = render(templates)
    wording = re.search(r'<label for="consent">(.+)</label>', form)
    ticked = control(render(templates, {"consent": "on"}), "consent")

    assert wording
    assert f'<input type="hidden" name="consent_text" value="{wording[1]}">' in form
    assert re.findall("required|checked", control(form, "consent")) == []
    assert " checked" in ticked


@pytest.mark.parametrize("field", [*FIELDS, "consent", "_gotcha"])
def test_each_field_is_described_for_agents(templates: jinja2.Environment, field: str) -> None:
    """Each field that an agent could fill in says what belongs there."""
    assert re.search(r' toolparamdescription="\w[^"]+\."', control(render(templates), field))


def test_an_agent_does_not_send_by_itself(templates: jinja2.Environment) -> None:
    """The form is a tool of WebMCP that fills in, and leaves the sending to the person."""
    form = render(templates)

    assert re.search(r'<form[^>]* toolname="send_message" tooldescription="[^"]+"', form)
    assert "toolautosubmit" not in form


@pytest.mark.parametrize("field", ["name", "email", "message"])
def test_no_field_cuts_what_is_typed(templates: jinja2.Environment, field: str) -> None:
    """A pasted text would lose its end without a word; the limit of a message is said below it."""
    limit = LeadRow.model_json_schema()["properties"]["message"]["maxLength"]
    form = render(templates)

    assert "maxlength" not in control(form, field)
    assert f'id="message-limit">At most {limit:,} characters.' in form
    assert 'aria-describedby="message-limit"' in control(form, "message")


def test_the_rest_is_offered_where_two_messages_hold_it(templates: jinja2.Environment) -> None:
    """Behind the button that sends, which the key Enter presses; hidden where it is of no use."""
    hidden, shown = render(templates), render(templates, {}, {"rest": "Or send <both>."})

    assert hidden.index(">Send</button>") < hidden.index('name="rest"')
    assert (
        '<div class="field" hidden>\n<p><button class="plain" type="submit" name="rest"' in hidden
    )
    assert '<div class="field">\n<p><button class="plain" type="submit" name="rest"' in shown
    assert '<p class="small" id="rest-fault">Or send &lt;both&gt;.</p>' in shown
    assert 'aria-describedby="rest-fault"' in shown


def test_the_budgets_of_the_site_are_offered(templates: jinja2.Environment) -> None:
    """The field offers what BUDGET_TIERS lists, in its order."""
    assert re.findall(r"<option>([^<]+)</option>", render(templates)) == TIERS


@pytest.mark.parametrize("tiers", [None, []])
def test_without_budgets_there_is_no_budget_field(
    templates: jinja2.Environment, tiers: list[str] | None
) -> None:
    """Without a list, the form sends a fixed text that the API accepts."""
    limit = LeadRow.model_json_schema()["properties"]["budget_tier"]["maxLength"]
    form = render(templates, {"budget_tier": "Typed elsewhere"}, tiers=tiers)
    field = control(form, "budget_tier")

    assert field == '<input type="hidden" name="budget_tier" value="No budget: a question">'
    assert len("No budget: a question") <= limit
    assert "<select" not in form
    assert "Budget</label>" not in form


@pytest.mark.parametrize("field", FIELDS)
def test_an_error_is_at_its_field(templates: jinja2.Environment, field: str) -> None:
    """A fault's sentence is tied to its field, which takes the focus; the form says it failed."""
    form = render(templates, {}, {field: "is <not> right"})

    assert f'<p class="fault" id="{field}-fault">is &lt;not&gt; right</p>' in form
    assert f'aria-invalid="true" aria-describedby="{field}-fault" autofocus' in control(form, field)
    assert form.count("autofocus") == form.count("aria-invalid") == 1
    assert '<p class="fault" role="alert">Nothing was sent yet.' in form


def test_the_first_fault_takes_the_focus(templates: jinja2.Environment) -> None:
    """Among several errors the first on the page takes the focus, in whatever order they come."""
    form = render(templates, {}, {"message": "too long", "email": "no @", "name": "empty"})

    assert form.count("autofocus") == 1
    assert "autofocus" in control(form, "name")


def test_an_error_of_the_whole_form(templates: jinja2.Environment) -> None:
    """An error of no field is shown above the form, and no field is marked."""
    form = render(templates, {}, {"form": "Too many messages; try again in 5 minutes."})

    assert '<p class="fault" role="alert">Too many messages; try again in 5 minutes.</p>' in form
    assert "aria-invalid" not in form


def test_typed_values_are_kept(templates: jinja2.Environment) -> None:
    """Values come back as typed, a message's leading empty line and an unlisted budget included."""
    typed = {"name": "Ada", "email": "ada@x.test", "budget_tier": "Odd", "message": "\nHello\n"}
    form = render(templates, typed, {"email": "?"})

    assert 'value="Ada"' in control(form, "name")
    assert 'value="ada@x.test"' in control(form, "email")
    assert "<option selected>Odd</option>" in form
    assert re.search(r"<textarea[^>]*>\n\nHello\n</textarea>", form)


def test_a_listed_budget_is_chosen(templates: jinja2.Environment) -> None:
    """A budget on offer is selected in its place, and not listed twice."""
    tier = re.findall(r"<option>([^<]+)</option>", render(templates))[1]
    form = render(templates, {"budget_tier": tier})

    assert form.count(f"<option selected>{tier}</option>") == form.count(tier) == 1


def test_hostile_values_stay_text(templates: jinja2.Environment) -> None:
    """Nothing that was typed, and no sentence about it, becomes markup."""
    form = render(templates, dict.fromkeys(FIELDS, HOSTILE), dict.fromkeys(FIELDS, HOSTILE))

    assert "<script" not in form
    assert form.count("</textarea>") == 1
    assert form.count("</select>") == 1


def test_the_trap_is_out_of_the_way(templates: jinja2.Environment) -> None:
    """The trap for robots is neither seen, read out, reached by keyboard nor filled in."""
    trap = re.search(r'<p class="trap" aria-hidden="true">.*?</p>', render(templates), re.DOTALL)

    assert trap
    assert 'name="_gotcha" tabindex="-1" autocomplete="off"' in trap[0]
