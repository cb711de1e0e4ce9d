"""deploy/compose.yml is a Compose file whose settings, commands, paths and services exist."""

import re
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from edge_api.settings import SETTINGS, read_settings

ROOT: Final = Path(__file__).parents[1]
FILE: Final = ROOT / "deploy" / "compose.yml"
TEXT: Final = FILE.read_text("utf-8")
COMPOSE: Final[dict[str, Any]] = yaml.safe_load(TEXT)
SERVICES: Final[dict[str, Any]] = COMPOSE["services"]
OURS: Final = ("watcher", "edge-one", "edge-two")
FORE_EDGE: Final = "from site_build.__main__ import fore_edge; fore_edge()"
GIVEN: Final = {"DOMAIN": "journal.example", "SECRET_KEY": "s" * 32, "POSTGRES_PASSWORD": "pw"}


def fill_in(text: str) -> str:
    """Return a value with the variables of `.env`; their messages are left out."""
    return re.sub(r"\$\{(\w+)(:\?[^}]*)?\}", lambda found: GIVEN[found[1]], text)


@pytest.mark.size("test")
def test_it_is_what_the_specification_of_compose_allows() -> None:
    """By the schema of the specification, as check-jsonschema brings it."""
    words = ["-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    judged = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)

    assert judged.returncode == 0, judged.stdout + judged.stderr


@pytest.mark.parametrize("name", OURS)
def test_its_settings_are_valid(name: str) -> None:
    """Each is one of the edge's, and together they are without a contradiction."""
    given = {key: fill_in(text) for key, text in SERVICES[name]["environment"].items()}
    settings = read_settings(given, dotenv=None)
    (network,) = COMPOSE["networks"]["default"]["ipam"]["config"]

    assert given.keys() <= SETTINGS.keys()
    assert settings.site_url == "https://journal.example"
    assert settings.trusted_proxies == (network["subnet"],)


def test_every_variable_is_named_at_the_top() -> None:
    """Who starts it learns first what `.env` needs."""
    used = set(re.findall(r"\$\{(\w+)", TEXT))

    assert used == GIVEN.keys()
    assert all(each in TEXT.partition("name:")[0] for each in used)


@pytest.mark.size("test")
@pytest.mark.parametrize("name", OURS[:2])
def test_its_paths_and_commands_exist(name: str) -> None:
    """The image is built from this checkout, and its commands are those of the program."""
    build, command = SERVICES[name]["build"], " ".join(SERVICES[name]["command"])
    assert (FILE.parent / build["context"] / build["dockerfile"]).is_file()
    for words in re.findall(r"fore-edge ([a-z]+[^;\"]*)", command):
        subprocess.run(
            [sys.executable, "-c", FORE_EDGE, *words.split(), "--help"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )


def test_the_proxy_leads_to_the_edges_and_to_what_they_answer() -> None:
    """It asks readiness, hides /metrics, and its network is the one whose headers are believed."""
    proxied = COMPOSE["configs"]["proxy"]["content"]

    assert re.findall(r"reverse_proxy (.*) \{", proxied) == ["edge-one:8000 edge-two:8000"]
    assert "health_uri /api/public/v1/readiness" in proxied
    assert "respond /metrics 404" in proxied
    assert ip_network(COMPOSE["networks"]["default"]["ipam"]["config"][0]["subnet"]).is_private
    assert "@database:5432/journal" in SERVICES["edge-one"]["environment"]["DATABASE_URL"]
    assert SERVICES["database"]["environment"]["POSTGRES_DB"] == "journal"


def test_every_volume_and_service_that_is_named_is_there() -> None:
    """Also those that others wait for."""
    mounted = {each.partition(":")[0] for one in SERVICES.values() for each in one["volumes"]}
    needed = {name for one in SERVICES.values() for name in one.get("depends_on", ())}

    assert mounted == COMPOSE["volumes"].keys()
    assert needed <= SERVICES.keys()
