"""Templates of the edge's pages reach data alone, since a build may come from another machine."""

import builtins
import pickle
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from pathlib import Path
from types import BuiltinMethodType, MethodType, NoneType
from typing import Any

import pytest
from jinja2 import StrictUndefined, Template, Undefined
from jinja2.exceptions import SecurityError

from edge_api.auth.actor import new_id, system_clock
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.query import Insert
from edge_api.db.types import format_instant
from edge_api.journal.builds import BuildManager
from edge_api.mail.suppressions import UnsubscribeLinks
from edge_api.oauth.clients import NewClient
from edge_api.oauth.server import OAuthServer
from edge_api.schema.page_templates import (
    BASE_TEMPLATE,
    DOCS_BASE_TEMPLATE,
    FORMS,
    PAGE_VARIABLES,
    REFERENCE_VARIABLES,
    TEMPLATES_FOLDER,
)
from edge_api.schema.template_language import PLAIN_TYPES, Sandbox, make_environment
from tests.edge.oauth.conftest import GRANT_TYPES, REDIRECT, request_pairs
from tests.edge.small_builds import make_post, point_at, write_build, write_site

pytestmark = pytest.mark.one_engine

DEPTH = 3
FRAME = "<!-- title --><!-- path --><!-- description --><!-- content -->"
UNPICKLES = """\
{% set f = namespace(q=none) %}
{% for p in pages[1:] %}{% for o in p.FIELD.args[1]['operations'] %}
{% if o[0].query %}{% set f.q = o[0].query %}{% endif %}{% endfor %}{% endfor %}
{{ f.q.parse_file(FILE, content_type='application/pickle', allow_pickle=true, proto='pickle') }}
"""
LOOPS = "{{ site_language.catalogue.add_fallback(site_language.catalogue) }}"
INSTALLS = "{{ site_language.catalogue.install() }}"


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        """Return the call that unpickling makes."""
        return Path.touch, (self.file,)


async def follow(site: Any, build_dir: Path, number: int, **templates: str) -> None:
    """Let the edge serve a new build with these templates."""
    newer = write_build(build_dir, f"build-{number:04}", [make_post("a")])
    sources = {f"{name}.html": source for name, source in templates.items()}
    frames = {BASE_TEMPLATE: FRAME, DOCS_BASE_TEMPLATE: FRAME}
    write_site(newer / TEMPLATES_FOLDER, {**frames, **sources})
    point_at(build_dir, newer)
    await site.service[BuildManager].refresh()


async def fetch(site: Any, path: str) -> tuple[int, bytes]:
    """Return the status and the body of a page."""
    async with site.ask("GET", path) as answer:
        return answer.status, await answer.read()


@pytest.mark.parametrize("field", ["write", "_write"])
async def test_a_template_unpickles_no_file(
    site: Any, build_dir: Path, tmp_path: Path, field: str
) -> None:
    """The page is refused, the file stays closed, and the next build is whole."""
    file, mark = tmp_path / "notes.pdf", tmp_path / "mark"
    file.write_bytes(pickle.dumps(Payload(mark)))
    good = "{% for each in pages %}{{ each.name }}{% endfor %}{{ page.html }}"
    attack = UNPICKLES.replace("FIELD", field).replace("FILE", repr(str(file)))
    await follow(site, build_dir, 2, docs=attack)
    assert (await fetch(site, "/docs/"))[0] == 503
    assert not mark.exists()
    await follow(site, build_dir, 3, docs=good)
    status, body = await fetch(site, "/docs/")

    assert (status, b"<h2" in body) == (200, True)


@pytest.mark.parametrize("source", [LOOPS, INSTALLS])
async def test_a_template_leaves_the_language_alone(
    site: Any, build_dir: Path, source: str
) -> None:
    """Neither a catalogue that asks itself, nor a name among the builtins."""
    await follow(site, build_dir, 2, search=source)
    assert (await fetch(site, "/search"))[0] == 503
    await follow(site, build_dir, 3, search="{{ _('Search') }} {{ results.total|show_number }}")

    status, body = await fetch(site, "/search")
    assert (status, body.endswith(b"Search 0")) == (200, True), body
    assert not hasattr(builtins, "_")


@pytest.mark.parametrize(
    "source",
    [
        "{{ made|attr('real')|attr('from_bytes')('x') }}",
        "{{ text['format']('x'.__class__) }}",
        "{{ '{0.parts}'.format(said) }}",
        "{{ [said]|map(attribute='parts')|list }}",
        "{{ hidden() }}",
        "{{ kind() }}",
        "{% set gettext = kind %}{% trans %}x{% endtrans %}",
        "{{ site_language.translate('x') }}",
        "{{ site_language.parts is defined }}{{ site_language.catalogue is defined }}",
        "{{ dict.fromkeys('a') }}",
    ],
)
def test_what_is_not_declared_is_refused(source: str) -> None:
    """However it is asked for, and in templates of other themes too."""
    for undefined in (StrictUndefined, Undefined):
        environment = make_environment(None, undefined)
        said = environment.globals["sentence"]("Said")  # type: ignore[operator]
        given = {"made": 1, "text": "x", "said": said, "hidden": lambda: 1, "kind": Payload}
        with pytest.raises(SecurityError):
            environment.from_string(source).render(given)


def test_what_themes_use_is_allowed() -> None:
    """Loops, macros, blocks, methods of data, and the functions that Jinja has."""
    source = """\
{% macro bold(x) %}<b>{{ x }}</b>{% endmacro %}
{% block one %}{{ loop is defined }}{% endblock %}{{ self.one() }}
{% for key, value in {'a': 1}.items() %}{{ loop.index }}{{ loop.cycle('x', 'y') }}{% endfor %}
{% set ns = namespace(n=1) %}{% set ns.n = 2 %}{{ ns.n }}{{ bold('x') }}
{% set turn = cycler('odd', 'even') %}{{ turn.next() }}{{ turn.current }}
{% set comma = joiner(';') %}{{ comma() }}{{ comma() }}{{ range(2)|list }}{{ dict(a=1).get('a') }}
{% macro around() %}<i>{{ caller() }}</i>{% endmacro %}{% call around() %}z{% endcall %}
{% for n in [[1]] recursive %}{{ loop(n) if n is iterable }}{% endfor %}
{% for group in [{'k': 1}]|groupby('k') %}{{ group.grouper }}{{ group.list }}{% endfor %}
{{ '{} {}'.format('a', 'b') }}{{ ('a'|safe).format() }}{{ 'a'.upper() }}{{ _('Search') }}
{% trans n=2 %}{{ n }}{% endtrans %}{{ site_language.code }}{{ sentence('S') }}"""
    text = make_environment(None, StrictUndefined).from_string(source).render()

    assert "<i>z</i>" in text
    assert "a baASearch" in text.replace("\n", "")


async def test_all_that_templates_are_given_is_declared(
    make_edge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data and declared fields, from each value of each page, as far as three steps lead."""
    seen: dict[str, list[Mapping[str, Any]]] = {}
    render = Template.render

    def note(template: Template, *given: Any, **more: Any) -> str:
        if isinstance(template.environment, Sandbox):
            seen.setdefault(str(template.name), []).append({**dict(*given), **more})
        return render(template, *given, **more)

    monkeypatch.setattr(Template, "render", note)
    settings = {
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "The Journal <post@journal-keepers.net>",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Edge Street, Binding",
        "OWNER_EMAIL": "owner@journal-keepers.net",
        "MAIL_FROM": "journal@journal-keepers.net",
        "SMTP_URL": "smtp://127.0.0.1:9",
        "SECRET_KEY": "a secret of thirty-two characters",
        "SITE_URL": "https://journal.test",
    }
    async with make_edge(**settings) as edge:
        await visit(edge)
    expected = {*(each.template for each in FORMS), *(f"{each}.html" for each in PAGE_VARIABLES)}

    assert {*seen} == {*expected, *REFERENCE_VARIABLES}
    environment = make_environment(None, StrictUndefined)
    found = {
        fault
        for name, given in seen.items()
        for values in given
        for fault in find_faults(environment, values, name, DEPTH)
    }
    assert found == set()


async def visit(edge: Any) -> None:
    """Ask for each page of the edge at least once."""
    order = NewClient("Reader", "none", GRANT_TYPES, ("posts:read",), (REDIRECT,))
    client = (await edge.service[OAuthServer].clients.register(order))["id"]
    link = await edge.service[UnsubscribeLinks].link("ann@example.org")
    now = system_clock()
    given = {"email": "bob@example.org", "token": "b" * 64, "status": "active"}
    subscriber = SUBSCRIBERS.new_row(given, format_instant(now), lambda: new_id(now))
    await edge.service.store.run(Insert(SUBSCRIBERS, [subscriber]))
    for path in ("/search", "/search?q=edge&page=2", "/search?q=edgge", "/docs/", "/docs/try/"):
        await fetch(edge, path)
    for path in ("/subscribe", f"/unsubscribe?{link.partition('?')[2]}", "/unsubscribe?token=x"):
        await fetch(edge, path)
    await fetch(edge, f"/unsubscribe?token={subscriber['token']}")
    pairs = list(request_pairs("v" * 43, client))
    async with edge.ask("GET", "/api/public/oauth/authorize", params=pairs) as answer:
        assert answer.status == 200
    asked = {"name": "Ann", "email": "", "purpose": "To read.", "type": "both", "_gotcha": ""}
    for path, form in (
        ("/contact/", {"name": "Ann"}),
        ("/contact/access/", {"name": "Ann"}),
        ("/contact/access/", asked),
        ("/contact/access/claim/", {"claim_token": "x"}),
        ("/subscribe", {"email": "none"}),
    ):
        async with edge.ask("POST", path, data=form) as answer:
            await answer.read()


def find_faults(environment: Any, value: Any, place: str, steps: int) -> Iterator[str]:
    """Yield the place of each value that is neither data nor declared, nor a method of data."""
    kind = type(value)
    if isinstance(value, MethodType | BuiltinMethodType):
        # Functions of classes, such as `str.maketrans`, can be read but not called.
        is_of_data = isinstance(value.__self__, PLAIN_TYPES)
        if environment.is_safe_callable(value) and not is_of_data:
            yield f"{place}: {kind}"
        return
    is_declared = hasattr(kind, "template_fields")
    # Nothing of a time zone can be reached, so it is shown at the most.
    if not (is_declared or isinstance(value, (*PLAIN_TYPES, NoneType, tzinfo))):
        yield f"{place}: {kind}"
        return
    members = value if isinstance(value, Mapping) else {}
    if isinstance(value, list | tuple):
        members = dict(enumerate(value))
    for key, member in members.items():
        yield from find_faults(environment, member, f"{place}[{key!r}]", steps)
    for name in dir(value) if steps else ():
        if name.startswith("_"):
            continue
        with_value = getattr(value, name, None)
        if environment.is_safe_attribute(value, name, with_value):
            yield from find_faults(environment, with_value, f"{place}.{name}", steps - 1)
