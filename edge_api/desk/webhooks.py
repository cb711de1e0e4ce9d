"""The screen of webhooks: endpoints with their events, and deliveries that failed."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from edge_api.db.problems import Problem
from edge_api.db.table import Row
from edge_api.desk.screens import Action, Screen, Values, Visit, render
from edge_api.operation.input import FormErrors
from edge_api.operation.model import OperationResult
from edge_api.webhooks.endpoints import EVENTS, Endpoints


async def show_webhooks(visit: Visit) -> Values:
    """Return the endpoints, and the newest deliveries that failed."""
    return {
        "endpoints": await _endpoints(visit).all(),
        "failed": await _endpoints(visit).failed(limit=50),
        "events": EVENTS,
        "key": visit.path.get("key", ""),
        "chosen": visit.chosen,
        "tested": visit.query.get("tested"),
    }


def _endpoints(visit: Visit) -> Endpoints:
    return visit.service[Endpoints].with_actor(visit.actor)


def _events(visit: Visit) -> tuple[str, ...]:
    if not visit.chosen("event") or not set(visit.chosen("event")) <= set(EVENTS):
        raise FormErrors({"event": "Tick at least one event."})
    return visit.chosen("event")


async def add(visit: Visit) -> OperationResult:
    """Add an endpoint and show its secret once."""
    url = visit.typed.get("url", "").strip()
    return await _show_secret(visit, await _endpoints(visit).add(url, _events(visit)))


async def rotate(visit: Visit) -> OperationResult:
    """Give an endpoint a new secret and show it once, unless another window has done so."""
    row = await _endpoints(visit).rotate(
        visit.path["key"], expected_former_until=visit.typed.get("former_until", "")
    )
    return await _show_secret(visit, row)


async def _show_secret(visit: Visit, row: Row) -> OperationResult:
    return await render(
        visit.service,
        "secret",
        "The secret of a webhook",
        name=row["url"],
        secret=row["secret"],
        back=WEBHOOKS.path,
    )


async def choose(visit: Visit) -> str:
    """Set the events that an endpoint gets from now on."""
    await _endpoints(visit).set_events(visit.path["key"], _events(visit))
    return WEBHOOKS.path


async def test(visit: Visit) -> str:
    """Send a test event now. Raises Problem `conflict` if it did not arrive."""
    result = await _endpoints(visit).test(visit.path["key"])
    if not result.is_delivered:
        raise Problem("conflict", f"The test event did not arrive: {result.message}")
    return f"{WEBHOOKS.path}?tested={visit.path['key']}"


async def remove(visit: Visit) -> str:
    """Remove an endpoint with its waiting deliveries, if the box is ticked."""
    if not visit.chosen("sure"):
        raise FormErrors({"sure": "Tick this box to remove it."})
    return await _change(Endpoints.remove, visit)


async def _change(method: Callable[..., Awaitable[object]], visit: Visit) -> str:
    """Run a method on the endpoint that the address names, and the delivery, if it names one."""
    await method(_endpoints(visit), *visit.path.values())
    return WEBHOOKS.path


WEBHOOKS: Final = Screen(
    "/desk/webhooks/", "Webhooks", "webhooks", show_webhooks, section="Settings"
)
SCREENS: Final = (WEBHOOKS,)
# Actions that send events elsewhere need a fresh sign-in; those that stop or repeat them do not.
ACTIONS: Final = (
    Action(WEBHOOKS.path, WEBHOOKS, add, needs_fresh_sign_in=True),
    Action("/desk/webhooks/retry/", WEBHOOKS, partial(_change, Endpoints.retry)),
    Action("/desk/webhooks/{key}/retry/", WEBHOOKS, partial(_change, Endpoints.retry)),
    Action("/desk/webhooks/{key}/discard/", WEBHOOKS, partial(_change, Endpoints.discard)),
    Action("/desk/webhooks/{key}/{delivery}/retry/", WEBHOOKS, partial(_change, Endpoints.retry)),
    Action(
        "/desk/webhooks/{key}/{delivery}/discard/", WEBHOOKS, partial(_change, Endpoints.discard)
    ),
    Action("/desk/webhooks/{key}/rotate/", WEBHOOKS, rotate, needs_fresh_sign_in=True),
    Action("/desk/webhooks/{key}/events/", WEBHOOKS, choose, needs_fresh_sign_in=True),
    Action("/desk/webhooks/{key}/pause/", WEBHOOKS, partial(_change, Endpoints.pause)),
    Action(
        "/desk/webhooks/{key}/resume/",
        WEBHOOKS,
        partial(_change, Endpoints.enable),
        needs_fresh_sign_in=True,
    ),
    Action("/desk/webhooks/{key}/test/", WEBHOOKS, test, needs_fresh_sign_in=True),
    Action("/desk/webhooks/{key}/remove/", WEBHOOKS, remove, needs_fresh_sign_in=True),
)
