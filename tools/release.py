"""Builds the wheel and the sdist of a release into dist/, proves them, and says which tag to set.

`make release` runs it. The wheel is installed in a clean environment, with the libraries of the
lock, and a journal that it makes is walked through as the tour of README.md does.
"""

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from datetime import date
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parent.parent
API = "/api/public/v1"
PATIENCE_SECONDS = 60
LEAD = {"name": "Ann", "email": "ann@example.org", "budget_tier": "starter", "message": "Hello."}
PAGES = {
    "/": "<h1",
    "/journal/the-first-post/": "<h1",
    "/search?q=post": "<mark>",
    "/sitemap.xml": "<urlset",
    "/llms.txt": "# ",
    "/feed.xml": "<feed",
    f"{API}/openapi.json": '"openapi"',
}


def read_version(root: Path) -> str:
    """Return the version that pyproject.toml, the code and the changelog agree on."""
    version = str(tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"])
    code = (root / "edge_api/schema/environment.py").read_text(encoding="utf-8")
    if f'VERSION: Final = "{version}"' not in code:
        raise SystemExit(f"VERSION of edge_api/schema/environment.py is not {version}")
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.search(rf"^## \[{re.escape(version)}\] - (\S+)$", changes, re.MULTILINE)
    if not dated:
        raise SystemExit(f"CHANGELOG.md has no section of {version}")
    try:
        date.fromisoformat(dated[1])
    except ValueError:
        raise SystemExit(f"CHANGELOG.md gives {version} no date: {dated[1]}") from None
    return version


def check_checkout(root: Path) -> str:
    """Return the commit; raises SystemExit where files differ from it."""
    status = ["git", "status", "--porcelain"]
    if changed := subprocess.run(status, cwd=root, check=True, capture_output=True).stdout:
        raise SystemExit(f"commit these first:\n{changed.decode()}")
    head = ["git", "rev-parse", "HEAD"]
    return subprocess.run(head, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def build(root: Path, target: Path) -> list[Path]:
    """Build both artefacts into an empty folder; return them."""
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "hatchling", "build", "-d", os.fspath(target)]
    subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
    return sorted(target.iterdir())


def install(root: Path, wheel: Path, folder: Path) -> Path:
    """Install the wheel and the lock in a clean environment; return its folder of programs."""
    venv.create(folder, with_pip=True)
    pip: list[str | Path] = [
        folder / "bin/python",
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "install",
    ]
    lock = root / "requirements/run.txt"
    subprocess.run([*pip, "--require-hashes", "-r", lock], check=True)
    subprocess.run([*pip, "--no-deps", wheel], check=True)
    return folder / "bin"


def ask(url: str, body: object = None, **headers: str) -> str:
    """Return the text of a successful answer; raises URLError."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(  # noqa: S310  our own
        url, data, {"Content-Type": "application/json", **headers}
    )
    with urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310
        return str(answer.read().decode())


def walk(programs: Path, folder: Path) -> None:
    """Make a journal, run it, and use it as a reader, a visitor, its owner and a program."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    origin = f"http://127.0.0.1:{port}"
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "LANG": "C.UTF-8"}
    command: list[str | Path] = [
        programs / "fore-edge",
        "init",
        "mysite",
        "--run",
        "--port",
        str(port),
    ]
    process = subprocess.Popen(command, cwd=folder, env=environment)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                ask(f"{origin}{API}/readiness")
                break
            except URLError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.1)
        for path, wanted in PAGES.items():
            if wanted not in ask(f"{origin}{path}"):
                raise SystemExit(f"{path} lacks {wanted}")
        created = json.loads(ask(f"{origin}{API}/leads", LEAD))
        key = {"X-API-Key": (folder / "mysite/var/edge.dev-key").read_text("ascii").strip()}
        leads = json.loads(ask(f"{origin}{API}/admin/leads?select=id", **key))
        posts = json.loads(ask(f"{origin}{API}/posts", **key))
        if [row["id"] for row in leads] != [created["id"]] or not posts["posts"]:
            raise SystemExit("the lead is not listed, or there are no posts")
    except HTTPError as error:
        raise SystemExit(f"{error.url} answers {error.code}") from None
    finally:
        process.terminate()
        ended = process.wait(PATIENCE_SECONDS)
    if ended:
        raise SystemExit(f"fore-edge run ends with status {ended}")


def main() -> None:
    """Build, prove, and print checksums and the tag."""
    version, commit = read_version(ROOT), check_checkout(ROOT)
    artefacts = build(ROOT, ROOT / "dist")
    wheel = next(each for each in artefacts if each.suffix == ".whl")
    with tempfile.TemporaryDirectory() as folder:
        walk(install(ROOT, wheel, Path(folder, "environment")), Path(folder))
    sums = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}" for each in artefacts]
    (ROOT / "dist" / "SHA256SUMS").write_text("\n".join(sums) + "\n", encoding="ascii")
    print(*sums, sep="\n")
    print(
        f"Fore-edge {version} works. Set the tag:\n  git tag -a v{version} -m v{version} {commit}"
    )


if __name__ == "__main__":
    main()
