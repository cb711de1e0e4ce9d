"""Lists of other services are taken in, and each line that is not taken is named."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge_api.__main__ import main
from edge_api.auth.actor import OPERATOR, new_id, system_clock
from edge_api.auth.erasure import Privacy
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.query import Filter, Insert, Order, Read, Store
from edge_api.db.table import Row
from edge_api.db.tables import AUDIT_LOG, SUPPRESSED_EMAILS
from edge_api.db.types import format_instant
from edge_api.newsletter.subscribers import BATCH, import_subscribers
from tests.edge.domain.conftest import MovableClock

SECRET = b"a secret of this test alone, 32 bytes"
LISTS = {
    "ghost": (
        "id,email,name,note,subscribed_to_emails,complimentary_plan,stripe_customer_id,created_at,"
        "deleted_at,labels,tiers\n"
        '1,Ann@Readers-Club.net,Ann,"a, note\nof two lines",true,false,,'
        "2025-01-15T10:00:00.000Z,,,\n"
        "2,ben@readers-club.net,Ben,,false,false,,2025-01-15T10:00:00.000Z,,,\n"
        "3,cy@readers-club.net,Cy,,true,false,,,2025-02-15T10:00:00.000Z,,\n"
    ),
    "substack": (
        "email,active_subscription,expiry,plan,email_disabled,created_at,first_payment_at\n"
        "ann@readers-club.net,false,,other,false,2025-01-15T10:00:00Z,\n"
        "ben@readers-club.net,true,,yearly,true,2025-01-15T10:00:00Z,\n"
    ),
    "substack, as of 2026": (
        "Email,Name,Stripe plan,Cancel date,Start date,Type\n"
        "ann@readers-club.net,Ann,,,2025-01-15T10:00:00.000Z,Free\n"
    ),
    "mailchimp": (
        '"Email Address","First Name",MEMBER_RATING,OPTIN_TIME,OPTIN_IP,CONFIRM_TIME,CONFIRM_IP\n'
        "ann@readers-club.net,Ann,2,,,2025-01-15 10:00:00,\n"
        "ben@readers-club.net,Ben,2,2025-01-15 10:00:00,,,\n"
    ),
    "mailchimp, unsubscribed": (
        "Email Address,CONFIRM_TIME,UNSUB_TIME,UNSUB_REASON\n"
        "ben@readers-club.net,2025-01-15 10:00:00,2025-02-15 10:00:00,NORMAL\n"
    ),
    "mailchimp, cleaned": (
        "Email Address,CONFIRM_TIME,CLEAN_TIME\n"
        "ben@readers-club.net,2025-01-15 10:00:00,2025-02-15 10:00:00\n"
    ),
    "buttondown": (
        "email,notes,tags,type,creation_date\n"
        "ann@readers-club.net,,,regular,2025-01-15T10:00:00Z\n"
        "ben@readers-club.net,,,unactivated,2025-01-15T10:00:00Z\n"
        "cy@readers-club.net,,,unsubscribed,2025-01-15T10:00:00Z\n"
    ),
    "buttondown, with a date": (
        "email_address,type,undeliverability_date\n"
        "ben@readers-club.net,regular,2025-01-15T10:00:00Z\n"
    ),
    "listmonk": (
        "uuid,email,name,attributes,status,created_at,updated_at\n"
        'u,ann@readers-club.net,Ann,"{""a"": 1}",enabled,2025-01-15T10:00:00Z,\n'
        "u,ben@readers-club.net,Ben,{},blocklisted,2025-01-15T10:00:00Z,\n"
    ),
    "plain": "email\nann@readers-club.net\n\n",
    "semicolons": "Name;E-Mail;Email\r\nAnn;x;ann@readers-club.net\r\n",
    "sep": "sep=;\r\nName;E-Mail\r\nAnn;ann@readers-club.net\r\n",
}


async def rows(store: Store) -> list[Row]:
    """Return all subscribers."""
    (result,) = await store.run(Read(SUBSCRIBERS, order=(Order("email"),)))
    return result.rows


async def add(store: Store, email: str, status: str) -> None:
    """Store a subscriber."""
    now = system_clock()
    given = {"email": email, "status": status, "token": f"{abs(hash(email)):064x}"}
    row = SUBSCRIBERS.new_row(given, format_instant(now), lambda: new_id(now))
    await store.run(Insert(SUBSCRIBERS, [row]))


@pytest.fixture
def clock() -> MovableClock:
    """Return a clock at noon of 1 June 2026."""
    return MovableClock()


@pytest.fixture
def take(store: Store, clock: MovableClock) -> Callable[[str], Any]:
    """Return what imports a list, and returns the reasons of lines that were not taken."""

    async def take_list(text: str) -> dict[int, str]:
        lines = await import_subscribers(store, clock, SECRET, OPERATOR, text)
        return {line.number: line.reason for line in lines if line.reason}

    return take_list


@pytest.mark.parametrize("name", LISTS)
async def test_lists_of_other_services(store: Store, take: Any, name: str) -> None:
    """Ann gets mail there, Ben and Cy do not."""
    reasons = await take(LISTS[name])
    found = await rows(store)

    assert [row["email"] for row in found] == ["ann@readers-club.net"] * (
        "ann@" in LISTS[name].lower()
    )
    assert len(reasons) == LISTS[name].count("ben@") + LISTS[name].count("cy@")
    assert all("list: " in reason for reason in reasons.values())
    for row in found:
        assert (row["status"], row["source"], row["asked_at"]) == ("active", "import", None)
        dated = re.search("created|creation|confirm_time|start date", LISTS[name].lower())
        day = "2025-01-15T10" if dated else "2026-06-01T12"
        assert row["confirmed_at"].startswith(day)


@pytest.mark.each_engine
async def test_nobody_is_revived(store: Store, take: Any, clock: MovableClock) -> None:
    """Who left, bounced, is suppressed or was erased here; who is pending is taken."""
    for name, status in (
        ("left", "ended"),
        ("bounced", "bounced"),
        ("here", "active"),
        ("waits", "pending"),
        ("erased", "active"),
    ):
        await add(store, f"{name}@readers-club.net", status)
    await Privacy(store, clock, SECRET).erase("Erased@readers-club.net", OPERATOR)
    row = SUPPRESSED_EMAILS.new_row(
        {"email": "never@readers-club.net", "reason": "unsubscribe"},
        format_instant(clock()),
        lambda: new_id(clock()),
    )
    await store.run(Insert(SUPPRESSED_EMAILS, [row]))
    names = "left bounced here waits erased never new"
    text = "email\n" + "".join(f"{name}@readers-club.net\n" for name in names.split(" "))

    assert await take(f"{text}no address\nNEW@readers-club.net\na@example.org\n") == {
        2: "is unsubscribed here",
        3: "bounced here",
        4: "is subscribed already",
        6: "was erased here",
        7: "is suppressed here: it wants no mail, or takes none",
        9: "is not a valid e-mail address",
        10: "is the same as line 8",
        11: "is in a domain that is reserved and receives no mail",
    }
    active = [row["email"] for row in await rows(store) if row["status"] == "active"]
    assert active == [f"{name}@readers-club.net" for name in ("here", "new", "waits")]
    (log,) = await store.run(Read(AUDIT_LOG, where=(Filter("verb", "eq", "import"),)))
    assert [row["rows"] for row in log.rows] == [2]


@pytest.mark.each_engine
async def test_ten_thousand_lines(store: Store, take: Any) -> None:
    """In many transactions; taken in again, each is named."""
    text = "email\n" + "".join(f"reader-{number}@readers-club.net\n" for number in range(10_000))
    assert await take(text) == {}
    assert len(await rows(store)) == 10_000
    (log,) = await store.run(Read(AUDIT_LOG, ("rows",)))
    assert {row["rows"] for row in log.rows} == {BATCH}
    assert len(await take(text)) == 10_000


LATER = "".join(f"reader-{number}@readers-club.net,x\n" for number in range(10_000))
QUOTE = "has a quote that is not closed, or more than 131072 characters in a field"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f'"oops\n{LATER[:278]}', {2}),
        (f'"oops\n{LATER}', {2}),
        (f'"oops\n{LATER}z@x.net,"fine, thanks"\n', {2}),
        (f'"oops\n{LATER}z@x.net,"\n', {2}),
        (f'"oops\nb@x.net,"again\n{LATER}', {2, 3}),
        (f"{'x' * 200_000}\n{LATER}", {2}),
        (f'"{"x" * 200_000}"\n{LATER}', {2}),
        (f'"two\nlines, ""quoted"", from b@x.net"\n{LATER}z@x.net,"open', set()),
        (f'"a quote" with words after\n{LATER}', set()),
    ],
)
@pytest.mark.one_engine
async def test_one_quote_takes_no_other_lines(
    store: Store, take: Any, text: str, named: set[int]
) -> None:
    """The record with it is named by its first line, and each line after it is taken."""
    text = f"email,notes\na@x.net,{text}"
    assert await take(text) == dict.fromkeys(named, QUOTE)
    found = {row["email"] for row in await rows(store)}
    meant = set(re.findall(r"(?m)^[^\s@,]+@[^\s@,]+(?=,)", text))
    assert found == meant - {f"{' ab'[number - 1]}@x.net" for number in named}


@pytest.mark.one_engine
async def test_a_line_that_lacks_a_column_does_not_say_yes(store: Store, take: Any) -> None:
    """A column that is not there is as one that is empty."""
    reason = "gets no mail by the list: subscribed_to_emails is empty"
    text = "email,subscribed_to_emails\na@x.net\nb@x.net,true\nc@x.net,\n"
    assert await take(text) == {2: reason, 4: reason}
    assert [row["email"] for row in await rows(store)] == ["b@x.net"]


@pytest.mark.one_engine
async def test_an_address_within_a_note_is_not_subscribed(store: Store, take: Any) -> None:
    """On a line of its own: of a note that is closed, and of one with a quote too many."""
    short = "has fewer columns than the first line, and comes after a stray quote"
    notes = '"Ask\nbob@x.net\n"', '"Say "hi" to\nbob@x.net\nsoon"'
    text = "email,notes\n" + "".join(
        f"{name}@x.net,{note}\n" for name, note in zip("ab", notes, strict=True)
    )

    assert await take(f"{text}c@x.net,\nd@x.net\n") == {6: short, 7: short, 9: short}
    assert [row["email"] for row in await rows(store)] == [f"{name}@x.net" for name in "abc"]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (
            b"Name;Mail\x1b\nAnn;x\n",
            "or Email Address, but: Name, Mail\ufffd. Save it as CSV in UTF-8",
        ),
        (b"", "no column Email, E-Mail or Email Address, but: nothing. Save it"),
        ("name\nAnn\n".encode("utf-16-le"), "but: n\ufffda"),
    ],
    ids=["other", "empty", "wide"],
)
@pytest.mark.one_engine
def test_what_is_no_list_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    data: bytes,
    fault: str,
) -> None:
    """With what to fix, and nothing stored."""
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/edge.db")
    file = tmp_path / "list.csv"
    file.write_bytes(data)
    assert main(["migrate"]) == 0
    assert main(["newsletter", "import", str(file)]) == 2
    assert fault in capsys.readouterr().err
    assert main(["newsletter", "import", str(tmp_path / "none.csv")]) == 2
    missing = f"{tmp_path}/none.csv"
    assert capsys.readouterr().err == f"{missing}: No such file or directory\n"


@pytest.mark.each_engine
async def test_a_list_with_nul(store: Store, take: Any) -> None:
    """Other characters stay, and the line is taken; an address with one is none."""
    reasons = await take("email,consent\nann@x.net,I\0do\nb\0n@x.net,\n")

    assert [(row["email"], row["consent"]) for row in await rows(store)] == [
        ("ann@x.net", "I\ufffddo")
    ]
    assert reasons == {3: "is not UTF-8: save the list as UTF-8"}


@pytest.mark.one_engine
def test_a_list_in_another_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the lines whose addresses cannot be read are left."""
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/edge.db")
    file = tmp_path / "list.csv"
    file.write_bytes("\ufeffname;email\n".encode() + b"J\xf6rg;j@x.net\nJo;j\xf6@x.net\n")
    assert main(["migrate"]) == 0
    assert main(["newsletter", "import", str(file)]) == 1
    said = capsys.readouterr()
    assert said.out.endswith("1 subscriber imported, 1 skipped\n")
    assert said.err.startswith("line 3: 'j\ufffd@x.net' is not UTF-8: save ")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.one_engine
def test_a_list_of_listmonk_is_said_to_need_a_filter(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    encoding: str,
) -> None:
    """Its status is that of an address, which may have left the list; also in UTF-16."""
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/edge.db")
    file = tmp_path / "list.csv"
    assert main(["migrate"]) == 0
    for name in ("listmonk", "ghost"):
        file.write_bytes(LISTS[name].encode(encoding))
        assert main(["newsletter", "import", str(file)]) == 1
        said = capsys.readouterr().out
        assert ("subscription_status=confirmed" in said) == (name == "listmonk")


@pytest.mark.one_engine
def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is exported is taken in elsewhere, with consent and dates."""
    text = (
        "email,consent,confirmed_at\n"
        '+ann@readers-club.net,"=I do, I do",2025-01-15T10:00:00Z\n'
        "wrong,,\n"
    )
    file = tmp_path / "list.csv"
    for store in ("one", "two"):
        monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/{store}/edge.db")
        (tmp_path / store).mkdir()
        file.write_text(text)
        assert main(["migrate"]) == 0
        capsys.readouterr()
        status = main(["newsletter", "import", str(file)])
        said = capsys.readouterr()
        if store == "one":
            assert (status, said.out) == (1, "1 subscriber imported, 1 skipped\n")
            assert said.err == "line 3: 'wrong' is not a valid e-mail address\n"
        else:
            assert (status, said.out, said.err) == (0, "1 subscriber imported, 0 skipped\n", "")
        assert main(["newsletter", "export"]) == 0
        text = capsys.readouterr().out
        assert "+ann@readers-club.net,active," in text
        assert "2025-01-15T10:00:00.000000Z" in text
