"""Black-box cases of the administrative interface, over HTTP, on a store filled through the API.

The project's own cases are in `cases/`; a larger file is run too where it is found, in the folder
that SHARED_DIR names or in `shared` beside the project.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from yarl import URL

from tests.shared_material import SHARED

HERE = Path(__file__).parent
FILES = [HERE / "cases" / "admin_cases.json", SHARED / "cases" / "admin_cases.json"]
SUITES = [json.loads(file.read_text(encoding="utf-8")) for file in FILES if file.is_file()]
NAMES = ["own", "shared"][: len(SUITES)]
WRITES = [
    pytest.param(suite["fixture"], case, id=f"{name}-{case['id']}")
    for name, suite in zip(NAMES, SUITES, strict=True)
    for case in suite["writes"]
]
ADMIN = "/api/public/v1/admin"
ERROR_MEMBERS = ["error", "message", "code", "details", "hint"]


class Answer(NamedTuple):
    """The answer to one request."""

    status: int
    headers: dict[str, str]
    body: Any


class Admin:
    """A client of the administrative interface of one running edge."""

    def __init__(self, edge: Any, key: str) -> None:
        self._edge, self._key = edge, key

    async def ask(self, method: str, table: str, query: str = "", **more: Any) -> Answer:
        """Send one request; the query is encoded already."""
        url = URL(f"{self._edge.url}{ADMIN}/{table}{'?' if query else ''}{query}", encoded=True)
        headers = {"X-API-Key": self._key, **more.pop("headers", {})}
        async with self._edge.session.request(method, url, headers=headers, **more) as answer:
            return Answer(answer.status, dict(answer.headers), await answer.json())

    async def fill(self, fixture: dict[str, list[dict[str, Any]]]) -> None:
        """Store the rows that the cases are about, after the row that is always there."""
        await self.ask("DELETE", "email_send_state", json={"match": {"id": 1}})
        for table, rows in fixture.items():
            answer = await self.ask("POST", table, json=rows)
            assert (answer.status, len(answer.body)) == (201, len(rows))


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty BUILD_DIR: rows need no journal."""
    return tmp_path_factory.mktemp("no-journal")


@pytest.fixture
async def admin(edge: Any) -> Admin:
    """Return a client with a key for everything."""
    return Admin(edge, await edge.key())


def faults(expect: dict[str, Any], answer: Answer) -> list[str]:
    """Return what is wrong with an answer, in words."""
    if answer.status not in [expect["status"], *expect.get("alt_status", [])]:
        return [f"status {answer.status}, not {expect['status']}: {answer.body}"]
    if answer.status >= 400:
        return [] if list(answer.body) == ERROR_MEMBERS else [f"error members: {answer.body}"]
    return [*row_faults(expect, answer.body), *header_faults(expect, answer.headers)]


def row_faults(expect: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """Compare rows: how many, which members they must have, in which order."""
    found = []
    if expect.get("row_count", len(rows)) != len(rows):
        found.append(f"{len(rows)} rows, not {expect['row_count']}")
    wanted = expect.get("rows_contain", [])
    if expect.get("ordered"):
        found += [
            f"row {number} is not {want}"
            for number, want in enumerate(wanted)
            if not (number < len(rows) and want.items() <= rows[number].items())
        ]
    else:
        found += [f"no row has {want}" for want in wanted if not has_row(rows, want)]
    if any(list(row) != expect.get("columns", list(row)) for row in rows):
        found.append(f"columns {list(rows[0])}, not {expect['columns']}")
    return found


def has_row(rows: list[dict[str, Any]], want: dict[str, Any]) -> bool:
    """Return whether a row has all these members."""
    return any(want.items() <= {key: row.get(key, ...) for key in want}.items() for row in rows)


def header_faults(expect: dict[str, Any], headers: dict[str, str]) -> list[str]:
    """Compare headers."""
    wanted = expect.get("headers", {})
    return [
        f"{name}: {headers.get(name)}, not {value}"
        for name, value in wanted.items()
        if headers.get(name) != value
    ]


@pytest.mark.parametrize("suite", SUITES, ids=NAMES)
async def test_every_read_answers_as_its_case_says(admin: Admin, suite: dict[str, Any]) -> None:
    """Each read of a file gives the rows, the order, the columns and the headers it names."""
    await admin.fill(suite["fixture"])
    found = {}
    for case in suite["reads"]:
        headers = case["request_headers"]
        answer = await admin.ask("GET", case["table"], case["query"], headers=headers)
        found[case["id"]] = faults(case["expect"], answer)

    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert len(found) == len(suite["reads"]) > 20


@pytest.mark.parametrize(("fixture", "case"), WRITES)
async def test_every_write_does_as_its_case_says(
    admin: Admin, fixture: dict[str, Any], case: dict[str, Any]
) -> None:
    """Each write answers as its case says, and leaves the rows that it says."""
    await admin.fill(fixture)
    data = case["raw"] if "raw" in case else json.dumps(case["body"])
    headers = {"Content-Type": "application/json"}

    answer = await admin.ask(case["method"], case["table"], data=data, headers=headers)

    assert faults(case["expect"], answer) == []
    then = case["expect"].get("then")
    if then:
        left = await admin.ask("GET", then["table"], then["query"])
        assert faults({"status": 200, **then}, left) == []


@pytest.mark.parametrize(
    ("expect", "answer"),
    [
        ({"status": 200}, Answer(201, {}, [])),
        ({"status": 400}, Answer(400, {}, {"error": "x"})),
        ({"status": 200, "row_count": 1}, Answer(200, {}, [])),
        ({"status": 200, "rows_contain": [{"a": 1}]}, Answer(200, {}, [{"a": 2}])),
        ({"status": 200, "rows_contain": [{"a": None}]}, Answer(200, {}, [{"b": 2}])),
        (
            {"status": 200, "ordered": True, "rows_contain": [{"a": 1}, {"a": 2}]},
            Answer(200, {}, [{"a": 2}, {"a": 1}]),
        ),
        (
            {"status": 200, "ordered": True, "rows_contain": [{"a": 1}]},
            Answer(200, {}, []),
        ),
        ({"status": 200, "columns": ["a", "b"]}, Answer(200, {}, [{"b": 1, "a": 1}])),
        ({"status": 200, "headers": {"Content-Range": "0-0/*"}}, Answer(200, {}, [])),
    ],
)
def test_a_wrong_answer_is_noticed(expect: dict[str, Any], answer: Answer) -> None:
    """Each kind of wrong answer is found by the comparison."""
    assert faults(expect, answer) != []
