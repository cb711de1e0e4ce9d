"""`clients` and `signing-keys` on the machine itself."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from joserfc.jwk import ECKey, KeySet

from edge_api.__main__ import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs a command and gives its exit code, output and complaints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/edge.db")

    def execute(*words: str) -> tuple[int, str, str]:
        status = main(list(words))
        said = capsys.readouterr()
        return status, said.out, said.err

    return execute


def registered(run: Run, *words: str) -> dict[str, object]:
    """Return a new client, as `--json` tells of it."""
    status, said, _ = run("clients", "register", "--name", "Robot", "--json", *words)
    assert status == 0
    printed: dict[str, object] = json.loads(said)
    return printed


def test_a_client_that_acts_for_itself_gets_a_secret_once(run: Run) -> None:
    """It is in no list."""
    client = registered(run, "--scopes", "posts:read")

    assert client["auth_method"] == "client_secret_basic"
    assert client["grant_types"] == ["client_credentials"]
    secret = str(client["client_secret"])
    assert secret.startswith("fe_cs_")
    _, listed, _ = run("clients", "list", "--json")
    assert secret not in listed
    assert json.loads(listed)[0]["secret_last_four"] == secret[-4:]


def test_a_client_with_a_redirect_is_public(run: Run) -> None:
    """It gets codes and refresh tokens, and has no secret."""
    client = registered(run, "--redirect-uri", "http://127.0.0.1/cb")

    assert (client["auth_method"], client["client_secret"]) == ("none", None)
    assert client["grant_types"] == ["authorization_code", "refresh_token"]
    assert client["scopes"] == ["posts:read", "leads:read", "leads:write", "mcp"]


def test_a_client_may_sign(run: Run, tmp_path: Path) -> None:
    """With the public keys of a file."""
    key = ECKey.generate_key("P-256", auto_kid=True)
    (tmp_path / "keys.json").write_text(json.dumps(KeySet([key]).as_dict(private=False)))

    client = registered(run, "--auth", "private_key_jwt", "--jwks", "keys.json")
    assert client["client_secret"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--redirect-uri", "http://elsewhere.example/"), "must be https"),
        (("--scopes", "everything"), "there is no scope"),
        (("--scopes", "posts:publish leads:read"), "also needs publish-with-enquiries"),
        (("--auth", "none"), "must authenticate"),
        (("--auth", "private_key_jwt"), "public keys"),
        (("--auth", "private_key_jwt", "--jwks", "nowhere.json"), "cannot be read"),
        (("--auth", "private_key_jwt", "--jwks", "text.json"), "is no JSON"),
        (("--grants", "authorization_code"), "codes need at least one"),
        (("--grants", "password"), "grants: there is no grant"),
    ],
)
def test_a_faulty_registration_says_what_to_fix(
    run: Run, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    """With exit status 2, and nothing is stored."""
    (tmp_path / "text.json").write_text("text")
    status, said, complained = run("clients", "register", "--name", "Robot", *words)

    assert (status, said) == (2, "")
    assert message in complained
    assert "no clients yet" in run("clients", "list")[1]


def test_a_secret_is_rotated_and_a_client_revoked(run: Run) -> None:
    """A client without a secret cannot be rotated; an unknown one is reported."""
    client = str(registered(run)["client_id"])
    status, said, complained = run("clients", "rotate", client)
    assert status == 0
    assert said.splitlines()[0] == client
    assert "shown this once" in complained

    assert run("clients", "revoke", client)[0] == 0
    assert "revoked" in run("clients", "list")[1]
    public = str(registered(run, "--redirect-uri", "http://127.0.0.1/cb")["client_id"])
    assert "has no secret" in run("clients", "rotate", public)[2]
    status, _, complained = run("clients", "rotate", client)
    assert (status, "is revoked" in complained) == (1, True)
    assert run("clients", "revoke", client)[0] == 0
    for action in ("rotate", "revoke"):
        status, _, complained = run("clients", action, "nobody")
        assert (status, "no client nobody" in complained) == (1, True)


def test_signing_keys_are_listed_and_rotated(run: Run) -> None:
    """The new one signs later."""
    run("migrate")
    assert run("signing-keys", "list")[1].splitlines() == ["KEY  SIGNS FROM"]
    status, kid, _ = run("signing-keys", "rotate")
    assert status == 0

    head, line = run("signing-keys", "list")[1].splitlines()
    assert head.startswith("KEY")
    assert line.startswith(kid.strip())


def test_reading_commands_make_no_store(run: Run, tmp_path: Path) -> None:
    """A store comes into being when something is to be kept."""
    for words in (("clients", "list"), ("signing-keys", "list"), ("signing-keys", "rotate")):
        assert run(*words)[0] == 1
    assert not (tmp_path / "edge.db").exists()
