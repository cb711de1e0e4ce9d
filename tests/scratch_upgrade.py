"""A program of test_deploy.py: a journal of the release before is upgraded by the page, and back.

It ends with a line `deployed`. Its arguments are those of `scratch_server`; the folder has the
wheels of both versions.
"""

import json
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from tests.scratch_machine import (
    BLOCK,
    DOMAIN,
    JOURNAL,
    PATIENCE,
    PROGRAMS,
    UNITS,
    fetch,
    prepare,
    run_block,
    start,
    wait_for,
)
from tests.scratch_server import restart_under_load

FORMER, NEW = "1.0.1", "1.1.0"
API = f"https://{DOMAIN}/api/public/v1"


def typed(page: str, heading: str) -> list[str]:
    """Return the lines that root types below a heading, but for those that need systemd."""
    section = page.partition(f"# {heading}\n")[2].partition("\n##")[0]
    lines = re.findall(r"^# (.*)$", section, re.MULTILINE)
    assert len(lines) == 5, lines
    return [line for line in lines if not line.startswith("systemctl ")]


def send(name: str) -> None:
    """Send a lead, which must be stored."""
    lead = {"name": name, "email": "ann@example.org", "budget_tier": "starter", "message": name}
    status, said = fetch(f"{API}/leads", json.dumps(lead).encode())
    assert status == 201, said


def look(version: str, folder: Path, *names: str) -> None:
    """See one version serve, publish, and have the leads of these names and no others."""
    wait_for(lambda: fetch(f"{API}/readiness")[0] == 200, "the edge is ready")
    assert json.loads(fetch(f"{API}/readiness")[1])["version"] == version
    assert (PROGRAMS / "current").readlink().name == version
    assert run_block("fore-edge --version\n", JOURNAL).split()[-1] == version
    listed = run_block(f"cd {JOURNAL}; fore-edge leads list\n", folder)
    assert [name for name in ("Before", "After") if name in listed] == [*names]
    posts = JOURNAL / "content/posts"
    path = posts / f"number-{len([*posts.iterdir()])}.md"
    head = f"---\ntitle: Of {version}\nslug: {path.stem}\ndate: 2026-01-02T08:00:00Z\n"
    path.write_text(f"{head}description: A post.\n---\n\nText.\n", "utf-8")
    shutil.chown(path, "journal", "journal")
    page = f"https://{DOMAIN}/journal/{path.stem}/"
    wait_for(lambda: fetch(page)[0] == 200, f"{version} publishes {path.stem}")


def end(*processes: "subprocess.Popen[bytes]") -> None:
    """End what units have started."""
    for each in processes:
        each.terminate()
        assert each.wait(PATIENCE) in (0, -15, 143)


def main() -> None:
    """Deploy the release before by its own program, upgrade it, go back, and upgrade it again."""
    page, folder, _, libraries = map(Path, sys.argv[1:])
    text = page.read_text("utf-8")
    deploy, *_ = prepare(page, folder, libraries)
    install = BLOCK.findall(text)[0]
    run_block(install.replace(NEW, FORMER), folder)
    (packages,) = PROGRAMS.glob(f"{FORMER}/lib/*/site-packages")
    (packages / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    run_block(deploy.replace(NEW, FORMER), folder)
    settings = (JOURNAL / ".env").read_bytes()

    listening = socket.create_server(("127.0.0.1", 8000), backlog=1024)
    edge, watcher = start("fore-edge", listening), start("fore-edge-publish")
    subprocess.run(["/usr/sbin/nginx"], check=True)
    wait_for(lambda: fetch(f"https://{DOMAIN}/")[0] == 200, "the first page is served")
    send("Before")
    look(FORMER, folder, "Before")

    upgrade = typed(text, "Upgrading")[2:]
    said = "".join(run_block(f"{line}\n", folder, b"") for line in upgrade)
    (backup,) = re.findall(r"(var/backups/edge-\S+\.db): .* rows, verified", said)
    assert "a copy of it was migrated and verified" in said
    assert "the store is at the schema of this version: restart the edge and the watcher" in said
    assert f"{NEW} is installed, and {FORMER} goes on until you type systemctl restart fore" in said
    assert json.loads(fetch(f"{API}/readiness")[1])["version"] == FORMER
    edge = restart_under_load(edge, listening)
    end(watcher)
    watcher = start("fore-edge-publish")
    send("After")
    look(NEW, folder, "Before", "After")
    assert (JOURNAL / ".env").read_bytes() == settings
    for unit in ("doctor.timer", "push.path"):
        assert (UNITS / f"fore-edge-{unit}").exists()

    end(edge, watcher)
    for line in typed(text, "Going back")[1:]:
        assert FORMER in line
        block = f"cd {JOURNAL}\n{line.replace('var/backups/edge-INSTANT.db', backup)}\n"
        run_block(block, folder, b"")
    edge, watcher = start("fore-edge", listening), start("fore-edge-publish")
    look(FORMER, folder, "Before")

    for line in upgrade:
        run_block(f"{line}\n", folder, b"")
    edge = restart_under_load(edge, listening)
    end(watcher)
    watcher = start("fore-edge-publish")
    look(NEW, folder, "Before")
    end(edge, watcher)
    print("deployed")


if __name__ == "__main__":
    main()
