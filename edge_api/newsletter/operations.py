"""The operations of the newsletter: the form that subscribes, its confirmation, and the API."""

import re
from functools import partial
from typing import Annotated, Final

import orjson
from pydantic import Field, TypeAdapter

from edge_api.db.problems import Problem
from edge_api.db.types import Address, Lines, Text
from edge_api.journal.builds import BuildManager
from edge_api.mail.suppressions import is_suppressed
from edge_api.newsletter import leaving
from edge_api.newsletter.leaving import (
    TOKEN,
    read_token,
    render_page,
    render_state,
    show_address,
)
from edge_api.newsletter.subscribers import NEWSLETTER_OFF, Subscribers
from edge_api.operation.input import BODY as FORM_BODY
from edge_api.operation.input import (
    HONEYPOT,
    FormErrors,
    FormFields,
    SentColumns,
    check_form,
    check_same_site,
)
from edge_api.operation.model import (
    AnyOperation,
    Body,
    HtmlResult,
    Operation,
    OperationRequest,
    OperationResult,
    Service,
    SuccessResponse,
    object_schema,
    page,
)
from edge_api.schema.paths import CONFIRM_SUBSCRIPTION, SUBSCRIBE, SUBSCRIBERS
from edge_api.schema.sentences import sentence

TAG: Final = "newsletter"
CONSENT: Final = sentence("New posts by mail")
"""What a visitor agrees to: the heading of the page, and the label of the line under a post."""
_HIDDEN: Final = {
    "source": re.compile("/[^\x00-\x20\x7f\ud800-\udfff]{0,199}"),
    "language": re.compile("[A-Za-z0-9-]{1,35}"),
}
"""Patterns of the fields that a form fills in by itself; other values are dropped."""


class SubscriberInput(SentColumns):
    """An address that asks for the newsletter, and what the person agreed to."""

    email: Address = Field(
        description="The address, which is asked by mail.", examples=["ann@readers-club.net"]
    )
    consent: Annotated[Lines, Field(min_length=1, max_length=1000)] = Field(
        description="The sentence beside the button that the person pressed.",
        examples=["New posts by mail, until I end it."],
    )
    source: Annotated[Text, Field(min_length=1, max_length=200)] = Field(
        default="api", description="Where that was, such as the address of a page."
    )
    language: Annotated[str, Field(pattern="^([A-Za-z0-9-]{1,35})?$")] = Field(
        default="", description="The language of its mail (BCP 47); without it the journal's."
    )


_ASKED: Final = {
    "status": "asked",
    "sentence": "A confirmation is mailed to the address, unless it must not have one",
}
_ASKED_SCHEMA: Final = object_schema(
    {
        "status": {"const": "asked"},
        "sentence": {"type": "string", "description": "What happens now."},
    },
    "status",
    "sentence",
    additionalProperties=False,
)


async def show_form(service: Service, _request: OperationRequest[None, None]) -> OperationResult:
    """Show the form that subscribes."""
    return await _render_form(service)


async def submit_form(
    service: Service, request: OperationRequest[None, FormFields]
) -> OperationResult:
    """Mail a confirmation, and say the same of every address."""
    typed = request.body.get("email", "")
    given = {"email": typed, "consent": service.pages.translate(CONSENT), "source": SUBSCRIBE}
    hidden = {
        name: request.body[name]
        for name, pattern in _HIDDEN.items()
        if pattern.fullmatch(request.body.get(name, ""))
    }
    try:
        await service.limiter.hit("subscribe", request.address)
        wish = check_form(SubscriberInput, {**given, **hidden})
    except (FormErrors, Problem) as error:
        problem = error if isinstance(error, Problem) else Problem("invalid")
        text = error.by_field["email"] if isinstance(error, FormErrors) else problem.message
        said = service.pages.translate(text)
        fault = sentence("%(fault)s.", fault=f"{said[:1].upper()}{said[1:]}")
        return await _render_form(service, typed, fault, problem)
    if not request.body.get(HONEYPOT):
        await service[Subscribers].ask(wish.model_dump())
    return await render_page(
        service,
        "notice",
        sentence("Look into your mail"),
        sentences=[
            sentence("If this address can be subscribed, a message is on its way to it."),
            sentence("Press the button on the page that it names, within seven days."),
            sentence("If nothing comes within ten minutes, look into the folder for spam."),
            sentence(
                "If it is not there either, the address may be mistyped: then enter it again. One "
                "address is asked once a day."
            ),
        ],
        link=(SUBSCRIBE, CONSENT),
    )


async def _render_form(
    service: Service, email: str = "", fault: str = "", problem: Problem | None = None
) -> HtmlResult:
    given = {"action": SUBSCRIBE, "email": email, "fault": fault}
    body = await service.pages.render("subscribe", CONSENT, **given)
    return HtmlResult(body, problem.status, problem.headers) if problem else HtmlResult(body)


async def _answer_confirmation(
    service: Service, request: OperationRequest[None, None], *, is_pressed: bool
) -> OperationResult:
    """Show the button that confirms; once it `is_pressed`, confirm, and show the newest post."""
    subscribers, token = service[Subscribers], read_token(request)
    subscriber = await subscribers.find(token)
    if subscriber is None:
        return await render_page(
            service,
            "notice",
            sentence("This link is not known"),
            status=404,
            sentences=[
                sentence("It may be older than seven days: then ask for another one."),
                sentence(
                    "It may have been cut off on its way: use the whole of the link in the mail."
                ),
            ],
            link=(SUBSCRIBE, sentence("New posts by mail")),
        )
    is_active = subscriber["status"] == "active"
    if is_active or await is_suppressed(service.store, subscriber["email"]):
        return await render_state(service, subscriber, sentence("You are subscribed"))
    address = show_address(subscriber)
    if not is_pressed:
        text = sentence(
            "New posts will be mailed to %(address)s once you press the button.", address=address
        )
        return await render_page(
            service,
            "subscription",
            sentence("Confirm your subscription"),
            sentences=[text],
            buttons=[(f"{CONFIRM_SUBSCRIPTION}?token={token}", sentence("Subscribe"))],
        )
    await subscribers.confirm(subscriber)
    newest = [orjson.loads(e.summary) for e in service[BuildManager].build().posts.entries[:1]]
    return await render_page(
        service,
        "notice",
        sentence("You are subscribed"),
        sentences=[
            sentence("New posts are mailed to %(address)s.", address=address),
            *(sentence("This is the newest:") for _ in newest),
        ],
        link=next(((post["url"], post["title"]) for post in newest), None),
    )


async def add_subscriber(
    service: Service, request: OperationRequest[None, SubscriberInput]
) -> OperationResult:
    """Mail a confirmation to an address that asked elsewhere."""
    if service.settings.newsletter == "off":
        raise Problem("unavailable", NEWSLETTER_OFF)
    await service[Subscribers].ask(request.body.model_dump())
    return OperationResult(_ASKED, status=202)


_UNKNOWN: Final = page(404, "A page: the link is unknown, or older than seven days")
OPERATIONS: tuple[AnyOperation, ...] = (
    *leaving.OPERATIONS,
    Operation(
        name="add_subscriber",
        method="POST",
        path=SUBSCRIBERS,
        summary="Ask an address whether it wants new posts by mail",
        description=(
            "The address gets a confirmation by mail, and is subscribed once a person presses the "
            "button that it leads to. The answer is the same for each address: a new one, a known "
            "one, one that ended its subscription, and one that wants no mail, which gets none. "
            "An address gets one confirmation in 24 hours, and after three without an answer "
            "none for 90 days; above 60 an hour they wait."
        ),
        tag=TAG,
        credential="required",
        scope="subscribers:write",
        handler=add_subscriber,
        body=Body(
            TypeAdapter(SubscriberInput),
            SubscriberInput.model_json_schema(),
            {
                "consent": {
                    "email": "ann@readers-club.net",
                    "consent": "New posts by mail, until I end it.",
                }
            },
        ),
        responses=(SuccessResponse(202, "It is taken", _ASKED_SCHEMA, _ASKED),),
        problems=("unavailable",),
    ),
)

FORMS: tuple[AnyOperation, ...] = (
    Operation(
        name="show_subscribe",
        path=SUBSCRIBE,
        summary="Show the form that subscribes to new posts by mail",
        tag=TAG,
        error_format="page",
        handler=show_form,
        responses=(page(200, "The form"),),
        problems=("unavailable",),
    ),
    Operation(
        name="show_confirmation",
        path=CONFIRM_SUBSCRIPTION,
        summary="Ask whether to confirm the subscription that a link belongs to",
        description="Nothing is changed: programs fetch links to look at them.",
        tag=TAG,
        error_format="page",
        handler=partial(_answer_confirmation, is_pressed=False),
        parameters=(TOKEN,),
        responses=(page(200, "The question, or that it is answered"), _UNKNOWN),
        problems=("unavailable",),
    ),
    Operation(
        name="confirm_subscription",
        method="POST",
        path=CONFIRM_SUBSCRIPTION,
        summary="Confirm the subscription that a link belongs to",
        description="The link has all that is needed; a body is ignored.",
        tag=TAG,
        error_format="page",
        handler=partial(_answer_confirmation, is_pressed=True),
        parameters=(TOKEN,),
        responses=(page(200, "The address is subscribed"), _UNKNOWN),
        problems=("unavailable",),
    ),
    Operation(
        name="subscribe_form",
        method="POST",
        path=SUBSCRIBE,
        summary="Subscribe by the form of a page",
        tag=TAG,
        handler=submit_form,
        body=FORM_BODY,
        responses=(page(200, "The same for every address"),),
        error_format="form",
        check_sender=check_same_site,
        limits_by_address=True,
    ),
)
