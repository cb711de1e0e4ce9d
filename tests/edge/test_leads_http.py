import asyncio
import json
from typing import Any

import pytest
from aiohttp import ClientResponse

PATH = "/api/public/v1/leads"
GOOD = {
    "name": "Ann Lee",
    "email": "ann@example.org",
    "budget_tier": "5k-10k",
    "message": "Hello",
}


async def post(edge: Any, key: str | None = None, **more: Any) -> tuple[ClientResponse, Any]:
    """Send a lead; return the answer with its body."""
    answer, raw = await post_raw(edge, key, **more)
    return answer, json.loads(raw)


async def post_raw(edge: Any, key: str | None = None, **more: Any) -> tuple[ClientResponse, bytes]:
    """Send a lead; return the answer with the bytes of its body."""
    more.setdefault("json", GOOD)
    async with edge.ask("POST", PATH, key, **more) as answer:
        return answer, await answer.read()


async def listed(edge: Any, key: str, query: str = "") -> list[Any]:
    """Return the leads that the API lists."""
    async with edge.ask("GET", f"{PATH}{query}", key) as answer:
        assert answer.status == 200
        body = await answer.json()
    assert body["count"] == len(body["leads"])
    return list(body["leads"])


async def test_a_lead_is_created_listed_and_found(edge: Any) -> None:
    """The answer has both published shapes; its Location leads to the row."""
    key = await edge.key()
    answer, body = await post(edge, key)

    assert answer.status == 201
    assert body["lead"] == {**GOOD, "id": body["id"], "created_at": body["created_at"]}
    assert {**body["lead"], **body} == {**body["lead"], "lead": body["lead"]}
    assert answer.headers["Cache-Control"] == "no-store"
    assert await listed(edge, key) == [body["lead"]]
    async with edge.ask("GET", answer.headers["Location"], key) as found:
        rows = await found.json()
    assert [(row["id"], row["source"], row["status"]) for row in rows] == [
        (body["id"], "api", "new")
    ]


@pytest.mark.parametrize(
    ("scopes", "tables", "may_read"),
    [
        (None, (), False),
        (("leads:write", "leads:read"), (), False),
        (("leads:write", "admin:write"), (), False),
        (("leads:write", "admin:read"), (), True),
        (("leads:write", "admin:read"), ("leads", "email_send_log"), True),
        (("leads:write", "admin:read"), ("email_send_log",), False),
    ],
)
async def test_a_location_is_given_to_those_who_may_read_it(
    edge: Any, scopes: tuple[str, ...] | None, tables: tuple[str, ...], *, may_read: bool
) -> None:
    """The right to read the row decides, also when an answer is repeated."""
    key = await edge.key(*scopes, tables=tables) if scopes else None
    for _ in range(2):
        answer, body = await post(edge, key, headers={"Idempotency-Key": "k"})
        assert answer.status == 201
        path = f"/api/public/v1/admin/leads?id=eq.{body['id']}"
        assert answer.headers.get("Location") == (path if may_read else None)
        async with edge.ask("GET", path, key) as found:
            assert (found.status == 200) is may_read


async def test_the_newest_lead_is_listed_first(edge: Any) -> None:
    """As many as were asked for."""
    key = await edge.key()
    for number in range(3):
        await post(edge, json={**GOOD, "message": str(number)})

    assert [lead["message"] for lead in await listed(edge, key, "?limit=2")] == ["2", "1"]
    assert len(await listed(edge, key, "?limit=200&unknown=x")) == 3


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("0", "must be 1 or more"),
        ("201", "must be 200 or less"),
        ("-1", "must be 1 or more"),
        ("x", "is not an integer"),
        ("", "is not an integer"),
        ("1.0", "is not an integer"),
        ("1e2", "is not an integer"),
        ("%20", "is not an integer"),
        ("1%0A", "is not an integer"),
        ("\u0663", "is not an integer"),
        ("9" * 30, "is not an integer"),
        ("1&limit=1", "is given more than once"),
    ],
)
async def test_a_limit_out_of_bounds_is_refused(edge: Any, limit: str, message: str) -> None:
    """400, naming the parameter and its bound."""
    async with edge.ask("GET", f"{PATH}?limit={limit}", await edge.key()) as answer:
        assert (answer.status, await answer.json()) == (400, {"error": f"limit: {message}"})


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"name": ""}, "name: must not be empty"),
        ({"name": "x" * 101}, "name: 101 of 100 characters: shorten it by 1"),
        ({"name": "a\nb"}, "name: must not contain control characters"),
        ({"name": "a\x00b"}, "name: must not contain NUL"),
        ({"name": 1}, "name: must be a string"),
        ({"name": "\u200b"}, "name: must have a visible character"),
        ({"name": "a\uffff"}, "name: must not contain noncharacters, such as U+FFFF"),
        ({"name": None}, "name: must be a string"),
        ({"email": "x"}, "email: not a valid e-mail address"),
        ({"email": "a@example.org\n"}, "email: must not contain control characters"),
        ({"email": f"{'a' * 244}@example.org"}, "email: 256 of 255 characters: shorten it by 1"),
        ({"budget_tier": "x" * 51}, "budget_tier: 51 of 50 characters: shorten it by 1"),
        ({"message": " \n "}, "message: must not be empty"),
        ({"message": "x" * 3600}, "message: 3,600 of 2,000 characters: shorten it by 1,600"),
        ({"consent": "yes"}, "consent: must be true or false"),
    ],
)
async def test_a_faulty_lead_is_refused(edge: Any, change: dict[str, Any], error: str) -> None:
    """400, naming the field; nothing is stored."""
    answer, body = await post(edge, json={**GOOD, **change})

    assert (answer.status, body) == (400, {"error": error})
    assert await listed(edge, await edge.key()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"name": "x" * 100},
        {"name": f"  {'x' * 100}  "},
        {"name": "e\u0301" * 100},
        {"name": "\U0001f600" * 100},
        {"email": f"{'a' * 243}@example.org"},
        {"email": "a@x.test"},
        {"budget_tier": "x" * 50},
        {"message": "x" * 2000},
        {"message": "\u0958" * 2000},
        {"message": "a\n\tb"},
        {"message": "a\r\nb\rc"},
        {"message": "x\r\n" * 999 + "xx"},
        {"unknown": {"nested": [1]}},
        {"consent": True, "consent_text": "I agree."},
    ],
)
async def test_a_lead_at_its_bounds_is_taken(edge: Any, change: dict[str, Any]) -> None:
    """With a credential and without."""
    key = await edge.key()

    for credential in (None, key):
        answer, _ = await post(edge, credential, json={**GOOD, **change})
        assert answer.status == 201


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'"x"', "application/json", 400),
        (b'{"name": "\xff"}', "application/json", 400),
        (b'{"name": "\\ud800"}', "application/json", 400),
        (json.dumps(GOOD).encode(), "text/plain", 415),
        (json.dumps(GOOD).encode(), "application/x-www-form-urlencoded", 415),
        (b" " * 70_000, "application/json", 413),
    ],
)
async def test_a_body_that_is_no_lead_is_refused(
    edge: Any, body: bytes, media_type: str, status: int
) -> None:
    """Each with an Error body and nothing more."""
    answer, error = await post(edge, json=None, data=body, headers={"Content-Type": media_type})

    assert answer.status == status
    assert list(error) == ["error"]


async def test_the_same_key_and_body_get_the_same_answer(edge: Any) -> None:
    """Byte by byte, said to be a repetition."""
    key = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}
    (first, one), (again, other) = [await post_raw(edge, headers=key) for _ in range(2)]

    assert (first.status, again.status, one) == (201, 201, other)
    assert first.headers.get("Idempotency-Replayed") is None
    assert again.headers["Idempotency-Replayed"] == "true"
    assert len(await listed(edge, await edge.key())) == 1


async def test_line_ends_make_no_other_body(edge: Any) -> None:
    """A form's lead with CR LF equals that of a program with LF."""
    key, texts = {"Idempotency-Key": "k"}, ("one\r\ntwo", "one\ntwo", "one\rtwo\r\n")
    sent = [await post(edge, headers=key, json={**GOOD, "message": text}) for text in texts]

    assert [answer.status for answer, _ in sent] == [201, 201, 201]
    assert [answer.headers.get("Idempotency-Replayed") for answer, _ in sent[1:]] == ["true"] * 2
    assert [lead["message"] for lead in await listed(edge, await edge.key())] == ["one\ntwo"]


async def test_the_same_key_with_another_body_is_refused(edge: Any) -> None:
    """422, and no second lead."""
    key = {"Idempotency-Key": "k"}
    await post(edge, headers=key)
    answer, body = await post(edge, headers=key, json={**GOOD, "message": "Other"})

    assert (answer.status, body) == (
        422,
        {"error": "This Idempotency-Key was used with another body"},
    )
    assert len(await listed(edge, await edge.key())) == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\u00e9"])
async def test_an_invalid_idempotency_key_is_refused(edge: Any, key: str) -> None:
    """It must not be ignored: its sender relies on it."""
    answer, body = await post(edge, headers={"Idempotency-Key": key})

    assert (answer.status, body["error"]) == (
        400,
        "Idempotency-Key: must have 1 to 255 visible ASCII characters",
    )


@pytest.mark.parametrize("with_credential", [True, False])
async def test_fifty_at_once_with_one_key_are_one_lead(edge: Any, *, with_credential: bool) -> None:
    """One row; fifty times 201 with the same bytes, forty-nine of them as repetitions."""
    reader = await edge.key()
    key = await edge.key("leads:write") if with_credential else None
    sent = [post_raw(edge, key, headers={"Idempotency-Key": "race"}) for _ in range(50)]
    answers = await asyncio.gather(*sent)

    assert {answer.status for answer, _ in answers} == {201}
    assert len({body for _, body in answers}) == 1
    assert sum("Idempotency-Replayed" in answer.headers for answer, _ in answers) == 49
    assert len(await listed(edge, reader)) == 1


async def test_the_honeypot_answers_as_usual(edge: Any) -> None:
    """A normal answer, no place in the list, a row for administrators."""
    key = await edge.key()
    answer, body = await post(edge, json={**GOOD, "_gotcha": "https://spam.test"})

    assert answer.status == 201
    assert set(body) == {"lead", "id", "name", "email", "budget_tier", "created_at"}
    assert await listed(edge, key) == []
    assert "Location" not in answer.headers
    path = f"/api/public/v1/admin/leads?id=eq.{body['id']}"
    async with edge.ask("GET", path, key) as found:
        assert [row["status"] for row in await found.json()] == ["spam"]
