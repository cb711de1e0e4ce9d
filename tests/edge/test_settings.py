"""Settings: what they may hold, where they come from, and how a wrong one is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edge_api.schema.credentials import read_limit
from edge_api.schema.environment import SettingsError, redact_database
from edge_api.settings import SETTINGS, read_settings
from tests.patience import patience

pytestmark = [pytest.mark.one_engine, pytest.mark.each_engine]


def refuse(environment: dict[str, str], dotenv: Path | None = None) -> list[str]:
    """Return the sentences with which settings are refused."""
    with pytest.raises(SettingsError) as refusal:
        read_settings(environment, dotenv)
    return refusal.value.errors


@pytest.mark.parametrize(
    "origin",
    [
        "https://journal.example",
        "http://127.0.0.1:8000",
        "http://[::1]:8000",
        "https://xn--caf-dma.example",
    ],
)
def test_an_origin_is_taken_unchanged(origin: str) -> None:
    """An origin as a browser sends it is the site's."""
    assert read_settings({"SITE_URL": origin}, None).site_url == origin


@pytest.mark.parametrize(
    "text",
    [
        "https://journal.example/",
        "https://journal.example/blog",
        "HTTPS://Journal.example",
        "ftp://journal.example",
        "https://me@journal.example",
        "https://journal..example",
        "https://jour nal.example",
        "https://caf\u00e9.example",
        "https://journal.example:99999",
        "https://journal.example:0",
        "https://-a.example",
        "https://journal.example\n",
        "https://",
    ],
)
def test_an_invalid_origin_is_refused(text: str) -> None:
    """Anything else names the setting and what it must be."""
    (fault,) = refuse({"SITE_URL": text})

    assert fault.startswith("SITE_URL: must ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PORT", "0"),
        ("PORT", "65536"),
        ("PORT", "eight"),
        ("DATABASE_URL", "postgresql://db"),
        ("LEADS_REQUIRE_CREDENTIAL", "perhaps"),
        ("TRUSTED_PROXIES", "10.0.0.0/40"),
        ("RATE_LEADS", "many"),
        ("RATE_LEADS", "0/minute"),
        ("RATE_LEADS", "5/0minutes"),
        ("RATE_LEADS", "5/1000000000years"),
        ("SECRET_KEY", "short"),
        ("EMAIL_HOOK_SECRET", "secret"),
        ("EMAIL_HOOK_SECRET", "whsec_c2hvcnQ="),
        ("EMAIL_HOOK_SECRET", "whsec_" + "c2VjcmV0" * 4 + ",whsec_*"),
        ("EMAIL_HOOK_SECRET", "whsec_" + "c2VjcmV0" * 11),
        ("RETAIN_LEADS_DAYS", "-1"),
        ("RETAIN_MAIL_LOG_DAYS", "36501"),
        ("RETAIN_AUDIT_DAYS", "a year"),
        ("LOG_FORMAT", "xml"),
        ("METRICS_SOCKET", "127.0.0.1:9464"),
        ("METRICS_SOCKET", "70000"),
        ("METRICS_SOCKET", "var/" + "m" * 97),
        ("METRICS_SOCKET", "var/metrics.sock"),  # METRICS is off
    ],
)
def test_a_wrong_value_names_its_setting(name: str, text: str) -> None:
    """An invalid value is refused under its own name."""
    (fault,) = refuse({name: text})

    assert fault.startswith(f"{name}: ")


def test_the_default_rates_are_rates() -> None:
    """They are not checked when settings are read; that of access requests is another's."""
    rates = {name: each.default for name, each in SETTINGS.items() if name.startswith("RATE_")}

    assert rates.pop("RATE_ACCESS_REQUESTS") is None
    assert len(rates) > 5
    assert [text for text in rates.values() if read_limit("any", str(text)) is None] == []


def test_access_requests_have_the_rate_of_leads_unless_they_have_their_own() -> None:
    """As the default is, and as an operator sets it; each of the two may be none."""
    for given, rate in (
        ({}, "5/10minutes;20/day"),
        ({"RATE_LEADS": "7/hour"}, "7/hour"),
        ({"RATE_LEADS": "0"}, "0"),
        ({"RATE_LEADS": "7/hour", "RATE_ACCESS_REQUESTS": "0"}, "0"),
        ({"RATE_ACCESS_REQUESTS": "3/day"}, "3/day"),
    ):
        assert read_settings(given, dotenv=None).rate_access_requests == rate


def test_two_secrets_are_valid_during_a_rotation() -> None:
    """Between commas or blanks; none is none."""
    one, two = "whsec_" + "c2VjcmV0" * 4, "whsec_" + "c2VjcmV1" * 8
    for between in (",", " ", ", "):
        text = f"{one}{between}{two}"
        assert read_settings({"EMAIL_HOOK_SECRET": text}, None).email_hook_secret == (one, two)
    assert read_settings({}, None).email_hook_secret is None


def test_every_invalid_setting_is_reported_at_once() -> None:
    """Three faults give three messages."""
    faults = refuse({"PORT": "x", "SITE_URL": "x", "LOG_FORMAT": "x"})

    assert [fault.partition(":")[0] for fault in faults] == ["PORT", "SITE_URL", "LOG_FORMAT"]


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    """A `.env` file speaks where the environment is silent."""
    dotenv = tmp_path / ".env"
    dotenv.write_text("PORT=9000\nLOG_FORMAT=json\n", "utf-8")

    settings = read_settings({"PORT": "9001"}, dotenv)

    assert (settings.port, settings.log_format) == (9001, "json")


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    """A `.env` file in another encoding gets a sentence."""
    dotenv = tmp_path / ".env"
    dotenv.write_bytes("SITE_URL=https://caf\u00e9".encode("latin-1"))

    assert refuse({}, dotenv) == [f"{dotenv} is not UTF-8; save it in that encoding"]


def test_a_line_that_is_no_setting_is_refused(tmp_path: Path) -> None:
    """Every such line of a `.env` file is reported by its number."""
    dotenv = tmp_path / ".env"
    dotenv.write_text("PORT=9000\nBROKEN LINE\nLOG_FORMAT='json\n", "utf-8")

    assert refuse({}, dotenv) == [
        f"{dotenv}, line {number}: write it like NAME=value" for number in (2, 3)
    ]


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """So does a folder of that name."""
    (tmp_path / ".env").mkdir()

    (reason,) = refuse({}, tmp_path / ".env")
    assert reason.startswith(
        f"{tmp_path / '.env'} cannot be read (Is a directory): run this as its"
    )


def test_an_empty_value_is_the_default() -> None:
    """A setting that is set to nothing counts as absent."""
    assert read_settings({"PORT": ""}, None).port == 8000


def test_a_table_that_nobody_reads_to_its_end_is_no_fault(tmp_path: Path) -> None:
    """A pager or `head` may go away first; the command ends, and says nothing of that."""
    (tmp_path / "content").mkdir()
    (tmp_path / "build" / "current").mkdir(parents=True)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "edge_api", "settings"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with os.fdopen(writing, "wb") as closed:
        ran = subprocess.run(  # noqa: PLW1510  its exit code is looked at
            command,
            stdout=closed,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=environment,
            timeout=patience(),
        )

    assert (ran.returncode, ran.stderr) == (1, b"")


KEY = "k" * 32


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///var/edge.db",
        "postgresql://edge:s%40cret@db.example:5432/journal?sslmode=require",
        "postgres://edge@one.example:5432,[2001:db8::1]:5433/journal",
        "postgresql:///journal?host=/run/postgresql",
        "postgresql://%2Frun%2Fpostgresql/journal",
    ],
)
def test_a_store_is_a_file_or_a_database_of_a_server(url: str) -> None:
    """Both are taken as they are; only a file has a path."""
    settings = read_settings({"DATABASE_URL": url, "SECRET_KEY": KEY}, None)

    assert settings.database_url == url
    assert (settings.database_path is None) == url.startswith("postgres")


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///",
        "sqlite://edge.db",
        "mysql://edge@db.example/journal",
        "postgresql://db.example",
        "postgresql://edge:hush@db.example/",
        "postgresql://edge:hush@db.example:0/journal",
        "postgresql://edge:hush@db.example:99999/journal",
        "postgresql://edge:hush@db.example:port/journal",
        "postgresql://edge:hush/@db.example/journal",
        "postgresql://edge:hush@hush@db.example/journal",
        "postgresql://edge:hush#@db.example/journal",
        "postgresql://edge:hu sh@db.example/journal",
        "POSTGRESQL://edge:hush@db.example/journal\n",
    ],
)
def test_an_invalid_database_url_is_refused(url: str) -> None:
    """In a sentence that says what it must be, and has no password."""
    (fault,) = refuse({"DATABASE_URL": url, "SECRET_KEY": KEY})

    assert fault.startswith("DATABASE_URL: must ")
    assert "hush" not in fault


def test_a_shared_store_needs_a_shared_secret() -> None:
    """A server keeps no file beside the store in which edges could find one."""
    (fault,) = refuse({"DATABASE_URL": "postgresql://db.example/journal"})

    assert fault.startswith("SECRET_KEY: needed with PostgreSQL")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://edge:hush@db.example/journal", "edge:(hidden)@db.example/journal"),
        (
            "postgresql://edge@db.example/journal?passw%6frd=hush&sslmode=require",
            "edge@db.example/journal?passw%6frd=(hidden)&sslmode=require",
        ),
        ("postgresql:///journal", "postgresql:///journal"),
    ],
)
def test_a_password_is_printed_nowhere(url: str, shown: str) -> None:
    """Not by the command that prints all settings, and not where a program prints its values."""
    environment = {**os.environ, "DATABASE_URL": url, "SECRET_KEY": KEY}
    command = [sys.executable, "-m", "edge_api", "settings"]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert f"{shown}  " in answer.stdout
    assert "hush" not in answer.stdout
    assert "hush" not in repr(read_settings(environment, None))


@pytest.mark.parametrize("name", ["password", "PASSWORD", "passw%6frd", "sslpassword"])
def test_each_option_that_is_a_password_is_hidden(name: str) -> None:
    """The key of a certificate has one as well."""
    shown = redact_database(f"postgresql://db.example/journal?{name}=hush&sslmode=require")

    assert shown == f"postgresql://db.example/journal?{name}=(hidden)&sslmode=require"
