"""Screens and actions of the desk, declared as operations are: address, scope, template, reads.

A screen is a GET that changes nothing. An action is a POST that calls the same domain
function as the API or the CLI, and redirects to a screen; after an error it shows the form as it
was filled in. A browser without a session is asked to sign in, and nothing that was typed is lost.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from pydantic import TypeAdapter

from edge_api.auth.actor import Actor
from edge_api.auth.desk_links import DeskLinks
from edge_api.auth.rate_limits import AUTHENTICATED
from edge_api.db.internal_tables import EMAIL_OUTBOX, MAX_URL_LENGTH
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Order, Read, find_row, read_first
from edge_api.db.tables import AUDIT_LOG, LEADS
from edge_api.db.types import format_instant
from edge_api.desk.audit_sentences import describe
from edge_api.desk.rendering import local_now, make_page, to_query, with_parameters
from edge_api.desk.sessions import (
    BROWSER_COOKIE,
    FRESH_FOR,
    HIDDEN_FIELD,
    Session,
    Sessions,
    add_tokens,
    check_origin,
    check_token,
    read_cookie,
    set_cookie,
)
from edge_api.leads.threads import MAX_COUNTED_LEADS, count_people
from edge_api.mail.answers import UNTRIED, Answers
from edge_api.operation.input import FormErrors, form_pairs
from edge_api.operation.model import (
    FORM,
    MAX_BODY_BYTES,
    NOINDEX,
    AnyOperation,
    Body,
    HtmlResult,
    Method,
    Operation,
    OperationRequest,
    OperationResult,
    Service,
    page,
)
from edge_api.schema.credentials import Scope
from edge_api.schema.paths import DESK
from edge_api.schema.writing import MAX_PICTURE_BYTES, MAX_TEXT_BYTES

SIGN_IN_PATH: Final = "/desk/sign-in/"
Values = Mapping[str, Any]
Request = OperationRequest[Any, Any]


@dataclass(frozen=True)
class Visit:
    """One request of a browser that is signed in."""

    service: Service
    session: Session
    path: Mapping[str, str]
    pairs: Sequence[tuple[str, str]]
    here: str
    """The address of the screen that is shown, or that has the form."""
    form: dict[str, str | list[str]] = field(default_factory=dict)

    @property
    def actor(self) -> Actor:
        """The actor who signed in."""
        return self.session.actor

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The parameters of the address by name, the last of each."""
        return dict(self.pairs)

    @property
    def typed(self) -> Mapping[str, str]:
        """The members of the form, the last of each, with line feeds (HTML, 4.10.21)."""
        return {name: text.replace("\r\n", "\n") for name, text in form_pairs(self.form)}

    @property
    def now(self) -> datetime:
        """The present instant, in the time zone of the journal."""
        return local_now(self.service)

    def chosen(self, name: str) -> tuple[str, ...]:
        """Return every value of a member, as of boxes that were ticked."""
        return tuple(text for each, text in form_pairs(self.form) if each == name)

    def require_fresh_sign_in(self) -> None:
        """Raise Problem `unauthenticated` if the sign-in is old: the action asks for a new one."""
        age = self.service.clock() - datetime.fromisoformat(self.session.started_at)
        if abs(age) >= FRESH_FOR:  # below zero, the clock was set back
            raise Problem("unauthenticated", "You signed in more than a day ago: sign in again")


@dataclass(frozen=True, slots=True)
class Screen:
    """A page: its address, its template, what it reads, and what it requires of the sign-in."""

    path: str
    title: str
    template: str
    read: Callable[[Visit], Awaitable[Values | OperationResult]]
    table: str = ""
    """The administrative table that it shows; empty: only for a sign-in that reaches all."""
    nav: str = ""
    """Its name in the navigation; empty: it has no entry there."""
    section: str = ""
    """The entry of the navigation that is current while it is shown, if it has none of its own."""
    checks_tables: bool = False
    """Whether `read` itself checks which tables the sign-in may use."""
    needs_fresh_sign_in: bool = False
    """Whether it asks for a new sign-in when the last one is older than a day."""
    scope: Scope = "admin:read"
    """The scope that the sign-in needs."""
    switch: str = ""
    """The setting without which it has no entry in the navigation."""


@dataclass(frozen=True, slots=True)
class Action:
    """A change: the address that its form is posted to, and the screen that has the form."""

    path: str
    screen: Screen
    run: Callable[[Visit], Awaitable[str | OperationResult]]
    """Returns the address of the next page, or a page. Raises FormErrors, Problem."""
    scope: Scope = "admin:write"
    needs_fresh_sign_in: bool = False
    """As in `Screen`; `run` may call `Visit.require_fresh_sign_in` instead, for some forms only."""
    keeps_form: bool = False
    """Whether every problem of `run` is shown beside the form, which may be long and have files."""


def operations(screens: Sequence[Screen], actions: Sequence[Action]) -> list[AnyOperation]:
    """Return screens and actions as operations."""
    menu = tuple((each.nav, each.path, each) for each in screens if each.nav)
    return [
        *(make_operation(each.path, "GET", partial(_show, each, menu)) for each in screens),
        *(
            # As many bytes as an administrative write may have, since an answer may be long.
            make_operation(
                each.path,
                "POST",
                partial(_act, each, menu),
                max_bytes=LONG_FORM_BYTES if each.keeps_form else 2**20,
                limit_files=_limit_files if each.keeps_form else None,
            )
            for each in actions
        ),
    ]


LONG_FORM_BYTES: Final = 4 * MAX_TEXT_BYTES
"""Most bytes of a form with the text of a post, each byte of which may take three."""


async def _limit_files(service: Service, headers: Mapping[str, str]) -> int:
    """Return the most bytes of a picture; none are kept of a browser that is not signed in."""
    secret = read_cookie(service.settings.site_url, headers.get("Cookie", ""))
    return MAX_PICTURE_BYTES if secret and await service[Sessions].find(secret) else 0


Handler = Callable[[Service, Request], Awaitable[OperationResult]]
BODY: Final = Body(TypeAdapter(dict[str, str | list[str]]), {"type": "object"}, media_type=FORM)


def make_operation(
    path: str,
    method: Method,
    handler: Handler,
    max_bytes: int = MAX_BODY_BYTES,
    limit_files: Callable[[Service, Mapping[str, str]], Awaitable[int]] | None = None,
) -> AnyOperation:
    """Return a page of the desk as an operation; a POST must come from a form of the desk."""
    return Operation(
        name=re.sub(r"\W+", "_", f"{method.lower()}{path}").strip("_"),
        path=path,
        method=method,
        summary="A page for the owner",
        handler=partial(_answer, handler, is_post=method == "POST"),
        responses=(page(200, "The page"),),
        error_format="page",
        limits_by_address=True,
        body=replace(BODY, max_bytes=max_bytes, limit_files=limit_files)
        if method == "POST"
        else None,
    )


async def _answer(
    handler: Handler, service: Service, request: Request, *, is_post: bool
) -> OperationResult:
    kept: Sequence[tuple[str, str]] = ()
    site_url, cookies = service.settings.site_url, request.headers.get("Cookie", "")
    try:
        if is_post:
            check_origin(service, request.headers)
            token, kept = str(request.body.pop(HIDDEN_FIELD, "")), form_pairs(request.body)
            check_token(site_url, cookies, token)
        result = await handler(service, request)
    except Problem as problem:
        result = await show_problem(service, problem, kept=kept)
    add_tokens(site_url, cookies, result)
    return result


Menu = tuple[tuple[str, str, Screen], ...]


async def _show(screen: Screen, menu: Menu, service: Service, request: Request) -> OperationResult:
    address = f"{_format_path(screen.path, request.path)}{to_query(request.pairs)}"
    session = await find_session(service, request)
    if session is None:
        return redirect(f"{SIGN_IN_PATH}{to_query([('to', address)])}")
    visit = Visit(service, session, request.path, request.pairs, address)
    try:
        _admit(visit, screen, screen.scope, needs_fresh_sign_in=screen.needs_fresh_sign_in)
        values = await screen.read(visit)
    except Problem as problem:
        return await show_problem(service, problem, visit, menu, to=address)
    if isinstance(values, OperationResult):
        values.headers = {**NOINDEX, **values.headers}
        return values
    result = await render_screen(screen, menu, visit, values)
    links, site_url = service[DeskLinks], service.settings.site_url
    if not links.check_browser_cookie(
        read_cookie(site_url, request.headers.get("Cookie", ""), BROWSER_COOKIE)
    ):
        result.headers = {
            **result.headers,
            "Set-Cookie": set_cookie(site_url, links.new_browser_cookie(), BROWSER_COOKIE),
        }
    return result


async def _act(action: Action, menu: Menu, service: Service, request: Request) -> OperationResult:
    session, kept = await find_session(service, request), form_pairs(request.body)
    here = safe_target(dict(kept).get("back") or _format_path(action.screen.path, request.path))
    signing = {
        "to": _format_path(action.path, request.path) if kept else here,
        "screen": here,
        "kept": kept,
    }
    if session is None:
        return await render(service, "sign_in", "Sign in", status=401, **signing)
    pairs = parse_qsl(urlsplit(here).query)
    visit = Visit(service, session, request.path, pairs, here, request.body)
    before = service.clock()
    try:
        _admit(visit, action.screen, action.scope, needs_fresh_sign_in=action.needs_fresh_sign_in)
        result = await action.run(visit)
    except FormErrors as errors:
        return await _show_errors(action, menu, visit, Problem(errors.code), errors.by_field)
    except Problem as problem:
        is_shown = action.keeps_form and problem.code not in ("forbidden", "unauthenticated")
        if problem.code not in ("invalid", "conflict") and not is_shown:
            return await show_problem(service, problem, visit, menu, **signing)
        name = problem.message.partition(": ")[0]  # the invalid field, if the message is about one
        said = problem.message.replace(": ", " ", 1) if name in visit.typed else problem.message
        where = name.lower() if name.lower() in visit.typed else "form"
        return await _show_errors(action, menu, visit, problem, {where: f"{said}."})
    if isinstance(result, OperationResult):
        return result
    own = Filter("actor", "eq", visit.actor.label), Filter("at", "gte", format_instant(before))
    last = Read(AUDIT_LOG, where=own, order=(Order("id", descending=True),), limit=1)
    made = await read_first(service.store, last)
    sent = dict(parse_qsl(urlsplit(result).query)).get("sent")
    is_new = sent != visit.query.get("sent")  # an earlier one may be in `here`
    return redirect(
        with_parameters(result, done=made["id"] if made else "", sent=sent if is_new else "")
    )


async def _show_errors(
    action: Action, menu: Menu, visit: Visit, problem: Problem, errors: Mapping[str, str]
) -> OperationResult:
    """Return the screen of a form, as it was filled in, with its errors."""
    values = await action.screen.read(visit)
    assert not isinstance(values, OperationResult)  # noqa: S101  a screen with forms is a page
    shown = {**values, "typed": visit.typed, "errors": errors}
    return await render_screen(action.screen, menu, visit, shown, problem.status)


def _admit(visit: Visit, screen: Screen, scope: Scope, *, needs_fresh_sign_in: bool) -> None:
    """Count the request. Raises Problem if the sign-in lacks the scope or the table, or is old."""
    visit.service.limiter.count(AUTHENTICATED, visit.session.id)
    if scope not in visit.actor.scopes:
        raise Problem(
            "forbidden", f"Your key lacks the scope {scope}: sign in with one that has it"
        )
    if not screen.checks_tables and not visit.actor.may_use(screen.table):
        raise Problem(
            "forbidden", "Your key is for some tables alone: sign in with one for all, or by a link"
        )
    if needs_fresh_sign_in:
        visit.require_fresh_sign_in()


async def find_session(service: Service, request: Request) -> Session | None:
    """Return the valid session of the browser's cookie, if any. Raises Problem `unavailable`."""
    secret = read_cookie(service.settings.site_url, request.headers.get("Cookie", ""))
    return await service[Sessions].find(secret) if secret else None


def safe_target(address: str) -> str:
    """Return an address within the desk; the desk's first page for any other."""
    path = unquote(unquote(address.partition("?")[0]))  # browsers take %2e for a dot
    is_own = address.startswith(DESK) and "\\" not in address and address.isprintable()
    return address if is_own and ".." not in path and len(address) <= MAX_URL_LENGTH else DESK


def _format_path(path: str, variables: Mapping[str, str]) -> str:
    return path.format(**{name: quote(text, safe="") for name, text in variables.items()})


def redirect(address: str, headers: Values | None = None) -> OperationResult:
    """Send the browser to another page with GET (RFC 9110, section 15.4.4)."""
    return HtmlResult(b"", 303, {"Location": address, **(headers or {})}, "", is_private=True)


async def show_problem(
    service: Service,
    problem: Problem,
    visit: Visit | None = None,
    menu: Menu = (),
    **more: Any,
) -> OperationResult:
    """Return an error as a page of the desk; for `unauthenticated` return the sign-in page.

    `more` are values of its template: `kept` is what was typed, `to` the next address.
    """
    is_stale = problem.code == "unauthenticated"
    page = ("sign_in", "Sign in again") if is_stale else ("problem", "This did not work")
    values = {"problem": problem.message, **more, **await _navigation_values(menu, visit)}
    result = await render(service, *page, status=problem.status, **values)
    result.headers = {**result.headers, **problem.headers}
    return result


async def render_screen(
    screen: Screen, menu: Menu, visit: Visit, values: Values, status: int = 200
) -> HtmlResult:
    """Return a screen as a page, with the navigation and a notice of what was just done."""
    frame = {**await _navigation_values(menu, visit, screen), **await _read_notice(visit)}
    default = {"title": screen.title, "typed": {}, "errors": {}, "here": visit.here}
    return await render(
        visit.service, screen.template, status=status, **{**default, **values, **frame}
    )


async def _read_notice(visit: Visit) -> Values:
    """Return the notice of the last action: the answer that it sent, else its audit entry."""
    store, own = visit.service.store, Filter("actor", "eq", visit.actor.label)
    sent = await visit.service[Answers].find(visit.query.get("sent", ""))
    if sent and visit.actor.may_use(LEADS.name):
        lead = await find_row(store, LEADS, sent["lead_id"])
        queued = await find_row(store, EMAIL_OUTBOX, sent["id"], *UNTRIED)
        left = queued and datetime.fromisoformat(queued["due_at"]) - visit.service.clock()
        to = (lead or sent).get("name") or sent["email"]
        return {"answered": {"id": sent["id"], "to": to, "left": left}}
    done = await find_row(store, AUDIT_LOG, visit.query.get("done"), own)
    return {"done": done and (await describe(store, [done], visit.actor))[0]}


async def _navigation_values(
    menu: Menu, visit: Visit | None, screen: Screen | None = None
) -> Values:
    """Return the navigation, with the number of people who wait for an answer."""
    if visit is None:
        return {}
    count, here = "", (screen.nav or screen.section) if screen else ""
    if visit.actor.may_use(LEADS.name):
        with suppress(Problem):  # show the page without the number
            (people,) = await count_people(visit.service.store, visit.service.clock(), "new")
            count = f"{people:,}{'+' if people >= MAX_COUNTED_LEADS else ''}" if people else ""
    reached = [
        (label, path, label == here)
        for label, path, each in menu
        if each.checks_tables or visit.actor.may_use(each.table)
        if each.scope in visit.actor.scopes
        if not each.switch or getattr(visit.service.settings, each.switch) == "on"
    ]
    return {
        "menu": reached,
        "count": count,
        "section": here,
        "is_entry": screen is not None and bool(screen.nav),
        "can_write": "admin:write" in visit.actor.scopes,
        "signed_in": f"the key {visit.actor.name}" if visit.actor.credential_id else "the owner",
    }


async def render(
    service: Service, template: str, title: str, *, status: int = 200, **values: Any
) -> HtmlResult:
    """Return a page of the desk made of a template; a screen is rendered by `render_screen`."""
    return HtmlResult(make_page(service, template, title, **values), status, is_private=True)
