"""PostgREST's own clients on the administrative tables: they read and insert.

Updates, deletions and upserts go another way here: they get a 400 that says how, and so does each
word of theirs that is not done.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from postgrest import APIError, SyncPostgrestClient
from postgrest.types import JSON

from tests.judges.node import FOLDER, run
from tests.judges.product import Product

pytestmark = pytest.mark.size("test")

TABLE = "suppressed_emails"
NO_BODY = ("match: is required", "The body is empty: send a JSON value")
Seen = Mapping[str, Mapping[str, Any]]
"""`data`, `count` and `error` (message and code) of each call, by its name."""
NOT_DONE = {
    "strict": "Prefer: count=planned",
    "any_of": "or",
    "contains": "metadata: cs",
    "text_search": "email: fts",
    "any_pattern": "email: like(any)",
    "matches": "email: match",
    "embedded": "leads(...)",
    "embedded_filter": "leads.name",
    "json_path": "metadata->n",
    "aggregate": "email.count(...)",
    "stripped": "Accept: nulls=stripped",
    "explained": "Accept: application/vnd.pgrst.plan",
}
"""The word that each refusal names."""


async def seen_from_javascript(url: str, key: str, folder: Path) -> Seen:
    """Return what postgrest-js got."""
    outcome = await run(FOLDER / "postgrest_client.mjs", url, key, folder=folder)
    assert outcome.status == 0, str(outcome)
    seen = json.loads(outcome.said.splitlines()[-1])
    assert isinstance(seen, dict)
    return seen


def seen_from_python(url: str, key: str) -> Seen:
    """Return what postgrest-py got from the same calls."""
    narrow = ("email", "why:reason")
    with ExitStack() as clients:

        def table(**more: str) -> Any:
            headers = {"X-API-Key": key, **more}
            return clients.enter_context(SyncPostgrestClient(url, headers=headers)).from_(TABLE)

        def narrowed(headers: Mapping[str, str] | None = None, **more: Any) -> Any:
            chosen = table(**(headers or {})).select("email", **more)
            return chosen.like("email", "*@py.example").order("email")

        calls: dict[str, Callable[[], Any]] = {
            "insert": lambda: table().insert(row("a")).select("*").single(),
            "insert_narrow": lambda: (
                table().insert([row("b"), row("c", metadata={"n": 1})]).select(*narrow)
            ),
            "insert_not_single": lambda: table().insert([row("d"), row("e")]).select("*").single(),
            "insert_again": lambda: table().insert(row("a")).select("*"),
            "update": lambda: (
                table().update({"reason": "complaint"}).eq("email", "a@py.example").select("*")
            ),
            "update_all": lambda: table().update({"reason": "complaint"}),
            "remove": lambda: table().delete().eq("email", "a@py.example"),
            "remove_all": lambda: table().delete(),
            "upsert": lambda: table().upsert(row("a", reason="complaint")).select("*"),
            "upsert_on": lambda: table().upsert([row("f")], on_conflict="email").select("*"),
            "insert_minimal": lambda: table().insert(row("g"), returning="minimal"),
            "read_page": lambda: narrowed(count="exact").range(1, 2),
            "read_range": lambda: narrowed({"Range": "1-2", "Range-Unit": "items"}),
            "read_sheet": lambda: table().select("email").eq("email", "a@py.example").csv(),
            "count": lambda: narrowed(count="exact", head=True),
            "strict": lambda: narrowed({"Prefer": "handling=strict, count=planned"}),
            "any_of": lambda: table().select("*").or_("email.eq.a@py.example,reason.eq.bounce"),
            "contains": lambda: table().select("*").contains("metadata", {"n": 1}),
            "text_search": lambda: table().select("*").text_search("email", "py"),
            "any_pattern": lambda: table().select("*").like_any_of("email", "{a*,b*}"),
            "matches": lambda: table().select("*").filter("email", "match", "^a"),
            "embedded": lambda: table().select("email", "leads(name)"),
            "embedded_filter": lambda: table().select("*").eq("leads.name", "Ann"),
            "json_path": lambda: table().select("metadata->n"),
            "aggregate": lambda: table().select("email.count()"),
            "stripped": lambda: table().select("*").strip_nulls(),
            "explained": lambda: table().select("*").explain(),
            "at_most": lambda: table().delete().eq("email", "a@py.example").max_affected(1),
            "read": lambda: table().select(*narrow).like("email", "*@py.example").order("email"),
            "read_one": lambda: table().select("email").eq("email", "c@py.example").single(),
        }
        return {name: answer_to(call) for name, call in calls.items()}


def row(name: str, **more: JSON) -> dict[str, JSON]:
    """Return a new row for the table."""
    return {"email": f"{name}@py.example", "reason": "bounce", **more}


def answer_to(call: Callable[[], Any]) -> dict[str, Any]:
    """Return what a call gives, in the shape of postgrest-js."""
    try:
        answer = call().execute()
    except APIError as error:
        return {"data": None, "error": {"message": error.message, "code": error.code}}
    return {
        "data": getattr(answer, "data", answer),
        "count": getattr(answer, "count", None),
        "error": None,
    }


@pytest.mark.usefixtures("judges")
@pytest.mark.parametrize("language", ["js", "py"])
async def test_postgrests_clients_read_and_insert(
    product: Product, api_key: str, tmp_path: Path, language: str
) -> None:
    """Inserts answer in the shape that was asked for; nothing else of theirs changes a row."""
    url = f"{product.origin}/api/public/v1/admin"
    if language == "js":
        seen = await seen_from_javascript(url, api_key, tmp_path)
    else:
        seen = seen_from_python(url, api_key)
    address = "{}@" + language + ".example"
    rows = [{"email": address.format(name), "why": "bounce"} for name in "abc"]

    assert seen["insert"]["data"]["email"] == address.format("a")
    assert set(seen["insert"]["data"]) == {"id", "email", "reason", "metadata", "created_at"}
    assert seen["insert_narrow"]["data"] == rows[1:]
    assert not seen["insert_minimal"]["data"]
    *_, minimal = seen["read"]["data"]
    assert minimal == {"email": address.format("g"), "why": "bounce"}
    assert seen["read"]["data"] == [*rows, minimal]
    page = [{"email": each["email"]} for each in rows[1:]]
    assert (seen["read_page"]["data"], seen["read_page"]["count"]) == (page, 4)
    assert seen["read_range"]["data"] == page
    assert seen["read_sheet"]["data"].splitlines() == ["email", address.format("a")]
    assert seen["count"]["count"] == 4
    assert seen["read_one"]["data"] == {"email": address.format("c")}
    codes = {name: answer["error"]["code"] for name, answer in seen.items() if answer["error"]}
    assert codes.pop("insert_not_single") == "PGRST116"
    assert codes.pop("insert_again") == "23505"
    for name, word in NOT_DONE.items():
        assert seen[name]["error"], name
        message = seen[name]["error"]["message"]
        assert re.match(rf"{re.escape(word)}.* is not supported", message), message
        assert codes.pop(name) == ("PGRST122" if name == "strict" else "PGRST100")
    for name in ("update", "remove", "at_most"):
        assert "rows are chosen by `match` in the body" in seen[name]["error"]["message"]
    for name in ("update_all", "remove_all"):  # one of them sends no body, the other `{}`
        assert seen[name]["error"]["message"] in NO_BODY
    for name in ("upsert", "upsert_on"):
        assert "change rows that exist with PATCH" in seen[name]["error"]["message"]
    refused = {"update", "update_all", "remove", "remove_all", "upsert", "upsert_on", "at_most"}
    assert set(codes) == refused
