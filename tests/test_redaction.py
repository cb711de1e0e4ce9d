"""No access log has a token of a path, whoever writes it and however the path is spelled."""

import re
import subprocess
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from edge_api.http.logs import redact_path
from tests.edge.edge_process import free_port
from tests.patience import patience
from tests.test_distribution import ROOT

pytestmark = pytest.mark.size("test")

TOKEN = "Xq7-token_of22letters_"
SPELLINGS = {
    f"/shared/{TOKEN}/": "/shared/-",
    f"/shared/{TOKEN}": "/shared/-",
    f"/shared/{TOKEN}/shared/1.avif": "/shared/-",
    f"/%73hared/{TOKEN}/": "/shared/-",
    f"/%53%48%41%52%45%44/{TOKEN}/": "/shared/-",
    f"/shared%2f{TOKEN}/": "/shared/-",
    f"/shared%2F{TOKEN}/": "/shared/-",
    f"/SHARED/{TOKEN}/": "/shared/-",
    f"//shared/{TOKEN}/": "//shared/-",
    f"/./shared/{TOKEN}/": "/./shared/-",
    f"/%2fshared/{TOKEN}/": "/%2fshared/-",
    f"/shared;x/{TOKEN}/": "/shared/-",
    f"/shared;{TOKEN}/": "/shared/-",
    f"/en/shared/{TOKEN}/": "/en/shared/-",
    f"/journal/../shared/{TOKEN}/": "/journal/../shared/-",
    f"/desk/link/{TOKEN}/": "/desk/link/-",
    f"/DESK/%6cink/{TOKEN}/": "/DESK/link/-",
    f"/en/desk%2flink/{TOKEN}/": "/en/desk%2flink/-",
}
MISSPELT = {
    f"/%2573hared/{TOKEN}/": "/shared/-",
    f"/shared%20/{TOKEN}/": "/shared/-",
    f"/shared.html/{TOKEN}/": "/shared/-",
    f"/shared\\{TOKEN}/": "/shared/-",
    f"/shared%5c{TOKEN}/": "/shared/-",
    f"shared/{TOKEN}/": "shared/-",
    f"/desk/./link/{TOKEN}/": "/desk/./link/-",
    f"/desk//link/{TOKEN}": "/desk//link/-",
}
"""Paths that nothing answers and proxies need not know."""
PLAIN: tuple[str, ...] = (
    "/",
    "/shared/",
    "/journal/shared-notes/",
    "/journal/sharedness/x/",
    "/journal/link/x/",
)
PLAIN += ("/desk/leads/", "/desk/", "/%zz/", "/%ff/%00", "*", "")


@pytest.mark.parametrize("sent", [*SPELLINGS, *MISSPELT])
def test_the_edge_redacts_every_spelling(sent: str) -> None:
    """Near misses too: who mistypes an address has a token that works."""
    assert redact_path(sent) == (SPELLINGS | MISSPELT)[sent]


@pytest.mark.parametrize("sent", PLAIN)
def test_the_edge_logs_other_paths_as_they_were_sent(sent: str) -> None:
    """Also those that only contain the word, and those that have nothing behind it."""
    assert redact_path(sent) == sent


def test_a_long_path_is_redacted_at_once() -> None:
    """The processor's time grows with the length alone."""
    began = time.process_time()
    for part in ("/desk", "%25", "/", "%2f", "/shared-"):
        redact_path(part * 20_000)

    assert time.process_time() - began < 2


def test_nginx_logs_no_token(tmp_path: Path) -> None:
    """The shipped map, as nginx reads it; its log has every other path, without its query."""
    subprocess.run([ROOT / "tools/provide", "nginx"], check=True, capture_output=True)
    shipped = (ROOT / "deploy/nginx.conf").read_text(encoding="utf-8")
    format_of_log = re.search(r"^map .*?^log_format .*?;$", shipped, re.DOTALL | re.MULTILINE)
    assert format_of_log is not None
    port, log = free_port(), tmp_path / "access.log"
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log; events {{}}\n"
        f"http {{ {format_of_log[0]}\nserver {{ listen 127.0.0.1:{port}; merge_slashes off;\n"
        f"access_log {log} fore-edge; location / {{ return 204; }} }} }}\n"
    )
    command: list[str | Path] = ["/usr/sbin/nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf"]
    nginx = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    paths = [*SPELLINGS, "/journal/shared-notes/?a=1", "/shared/"]
    try:
        lines = [ask(port, path, log) for path in paths]
    finally:
        nginx.terminate()
        nginx.wait(10)

    assert [path for path, line in zip(paths, lines, strict=True) if TOKEN in line] == []
    assert '"GET /shared/- HTTP/1.1" 204' in lines[0]
    assert '"GET /journal/shared-notes/ HTTP/1.1" 204' in lines[-2]


def ask(port: int, path: str, log: Path) -> str:
    """Send a path as it is and return the line that the log gets."""
    count = len(log.read_text().splitlines()) if log.exists() else 0
    for _ in range(200):
        try:
            with closing(HTTPConnection("127.0.0.1", port, timeout=patience(5))) as connection:
                connection.request("GET", path)
                connection.getresponse().read()
                break
        except OSError:
            time.sleep(0.05)
    for _ in range(200):
        if log.exists() and len(lines := log.read_text().splitlines()) > count:
            return lines[-1]
        time.sleep(0.02)
    raise AssertionError(f"nginx logged nothing for {path}")


@pytest.mark.parametrize("sent", SPELLINGS)
def test_the_pattern_for_caddy_finds_every_spelling(sent: str) -> None:
    """Go's syntax of it is Python's too."""
    shipped = (ROOT / "deploy/Caddyfile").read_text(encoding="utf-8")
    found = re.search(r'request>uri regexp "([^"]+)" "\$1-"', shipped)
    assert found is not None

    def redact(address: str) -> str:
        return re.sub(found[1], lambda each: f"{each[1] or ''}-", address)

    assert TOKEN not in redact(f"{sent}?a={TOKEN}")
    assert redact("/journal/shared-notes/?a=1") == "/journal/shared-notes/-"
