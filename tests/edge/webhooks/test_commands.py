"""`webhooks` on the machine itself."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from edge_api.__main__ import main
from tests.edge.webhooks.listener import listening

Run = Callable[..., tuple[int, str, str]]
HERE = "http://127.0.0.1:9/hook"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs `webhooks` and gives its exit code, output and complaints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/edge.db")

    def execute(*words: str) -> tuple[int, str, str]:
        status = main(["webhooks", *words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return execute


def added(run: Run, url: str = HERE) -> dict[str, Any]:
    """Return a new endpoint, as `--json` tells of it."""
    status, said, _ = run("add", url, "--json")
    assert status == 0
    printed: dict[str, Any] = json.loads(said)
    return printed


def test_an_endpoint_is_added_and_its_secret_shown_once(run: Run) -> None:
    """It is in no list, and the store holds it encrypted."""
    status, said, complained = run("add", HERE)

    endpoint, secret = said.split()
    assert (status, secret.startswith("whsec_")) == (0, True)
    assert "shown this once" in complained
    listed = run("list")[1] + run("list", "--json")[1]
    assert endpoint in listed
    assert secret not in listed
    assert secret.encode() not in b"".join(path.read_bytes() for path in Path().glob("edge.db*"))
    (shown,) = json.loads(run("list", "--json")[1])
    assert (shown["url"], shown["waiting"], shown["given_up"]) == (HERE, 0, 0)


def test_an_endpoint_chooses_its_events(run: Run) -> None:
    """New leads unless it says otherwise; a name that is none is refused with those that are."""
    leads = added(run)["id"]
    assert run("add", f"{HERE}/posts", "--events", "post.published", "post.removed")[0] == 0
    chosen = {row["url"]: row["events"] for row in json.loads(run("list", "--json")[1])}
    assert chosen == {HERE: "lead.created", f"{HERE}/posts": "post.published post.removed"}

    said = run("choose", leads, "--events", "lead.created", "post.updated")[1]
    assert said == f"{leads} gets from now on: lead.created, post.updated\n"
    assert "lead.created post.updated" in run("list")[1]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://example.org/", "must be https"),
        ("https://10.0.0.1/", "not public"),
        ("https://me@example.org/", "name and password"),
        ("example.org", "must begin with https://"),
    ],
)
def test_a_faulty_address_says_what_to_fix(run: Run, url: str, message: str) -> None:
    """With exit status 2, and nothing is stored."""
    status, said, complained = run("add", url)

    assert (status, said) == (2, "")
    assert message in complained
    assert "no webhook endpoints yet" in run("list")[1]


def test_loopback_endpoints_need_a_loopback_site(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A public site tells public addresses alone."""
    monkeypatch.setenv("SITE_URL", "https://journal.example")

    assert "must be https" in run("add", HERE)[2]
    assert "not public" in run("add", HERE.replace("http:", "https:"))[2]


def test_the_same_address_again_is_refused(run: Run) -> None:
    """With a sentence that names it."""
    added(run)

    status, _, complained = run("add", HERE)
    assert (status, complained) == (1, f"There is an endpoint for {HERE} already\n")


def test_a_secret_is_rotated(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """The list says until when the old one signs as well; a wrong overlap is refused."""
    endpoint = added(run)
    status, said, _ = run("rotate", endpoint["id"], "--overlap", "2", "--json")
    assert status == 0
    assert json.loads(said)["secret"] != endpoint["secret"]
    assert json.loads(run("list", "--json")[1])[0]["former_until"]
    assert run("rotate", endpoint["id"], "--overlap", "0")[0] == 0
    assert json.loads(run("list", "--json")[1])[0]["former_until"] is None

    for hours in ("-1", "721", "two", "9" * 99, "0" * 9 + "9" * 9, "0" * 5000):
        assert main(["webhooks", "rotate", endpoint["id"], "--overlap", hours]) == 2
        assert "Invalid value for '--overlap'" in capsys.readouterr().err


def test_an_endpoint_is_tried(run: Run) -> None:
    """The receiver gets a signed event about nothing; what it answers is printed."""
    with listening() as listener:
        endpoint = added(run, listener.url)
        assert run("test", endpoint["id"])[:2] == (0, f"{endpoint['id']}: answered 204\n")
        listener.status = 410
        assert run("test", endpoint["id"])[:2] == (1, f"{endpoint['id']}: answered 410\n")

    headers, body = listener.received[0]
    assert Webhook(endpoint["secret"]).verify(body, headers)["type"] == "webhook.test"
    assert "enabled" in run("list")[1], "what was only a test disables nothing"


def test_an_endpoint_is_removed(run: Run) -> None:
    """It is gone from the list."""
    endpoint = added(run)

    assert run("remove", endpoint["id"])[0] == 0
    assert "no webhook endpoints yet" in run("list")[1]


def test_an_unknown_endpoint_is_reported(run: Run) -> None:
    """For every command."""
    added(run)
    for action in ("remove", "enable", "rotate", "retry", "discard", "test"):
        for wanted in ("nobody", "01989f3a-7c00-7000-8000-3d2b1c0a9f8e"):
            status, _, complained = run(action, wanted)
            assert (status, f"no webhook endpoint {wanted}" in complained) == (1, True)


def test_each_change_is_audited(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """With who made it, and what it met."""
    endpoint = added(run)["id"]
    for action in ("rotate", "enable", "retry", "discard", "remove"):
        run(action, endpoint)
    main(["audit"])

    printed = capsys.readouterr().out
    for verb in ("add", "rotate", "enable", "remove"):
        assert f"credential:operator  {verb} webhook_endpoints" in printed
    for verb in ("retry", "discard"):
        assert f"credential:operator  {verb} webhook_deliveries" in printed


def test_another_secret_key_opens_no_secret(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says to rotate, and after that all is well."""
    with listening() as listener:
        endpoint = added(run, listener.url)["id"]
        monkeypatch.setenv("SECRET_KEY", "another secret of thirty-two letters")
        status, _, complained = run("test", endpoint)
        assert (status, "rotate it" in complained) == (1, True)
        assert run("rotate", endpoint, "--overlap", "0")[0] == 0
        assert run("test", endpoint)[0] == 0


def test_reading_commands_make_no_store(run: Run, tmp_path: Path) -> None:
    """A store comes into being when something is to be kept."""
    for words in (("list",), ("retry",), ("remove", "x"), ("test", "x")):
        assert run(*words)[0] == 1
    assert not (tmp_path / "edge.db").exists()
