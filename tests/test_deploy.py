"""docs/deploy.md is followed as root in a scratch root, and units and proxies hold what it says."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from edge_api.db.sqlite.processes import find_litestream
from tests.drills.test_upgrades import FORMER
from tests.patience import patience
from tests.test_distribution import ROOT, build_wheel

pytestmark = pytest.mark.size("ci")

MOUNT = """
set -eu
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
root=$1/root
shift
for folder in /dev /sys "$1" "$2" "$3"; do
    mkdir -p "$root$folder"
    mount --rbind "$folder" "$root$folder"
done
mount -t proc proc "$root/proc"
mkdir -p "$root/run/empty"
mount -t tmpfs tmpfs "$root/run"
shift 3
exec chroot "$root" "$@"
"""
"""Runs a command in a copy of this system that forgets all changes, but for those in `$4`."""


PROGRAMS = (
    "scratch_server",
    "scratch_restore",
    "scratch_pushes",
    "scratch_several",
    "scratch_upgrade",
)


@pytest.fixture(autouse=True, scope="module")
def caddy() -> Path:
    """Install the programs that a scratch root needs; return Caddy's, which may be anywhere."""
    for name in ("nginx", "openssl", "sshd", "systemd-analyze"):
        subprocess.run([ROOT / "tools/provide", name], check=True, capture_output=True)
    return Path(subprocess.check_output([ROOT / "tools/provide", "caddy"], text=True).strip())


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_page_takes_a_server_to_a_served_journal(
    tmp_path: Path, program: str, caddy: Path
) -> None:
    """Every block runs; the journal is used and attacked, and comes back on a new machine."""
    assert os.geteuid() == 0, "this test needs root: it deploys in a scratch root"
    scratch, folder = tmp_path / "scratch", tmp_path / "folder"
    scratch.mkdir()
    folder.mkdir()
    tmp_path.chmod(0o755)
    build_wheel(ROOT, folder)
    if program == "scratch_upgrade":
        archive, former = tmp_path / "former.tar", tmp_path / "former"
        command = ["git", "archive", "--output", os.fspath(archive), FORMER]
        subprocess.run(command, cwd=ROOT, check=True)
        shutil.unpack_archive(archive, former)
        build_wheel(former, folder)
    shutil.copy(caddy, folder / "caddy")  # the scratch root has no home that is another file system
    namespaces = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
    mount: list[str | Path] = [
        "sh",
        "-c",
        MOUNT,
        "sh",
        scratch,
        ROOT,
        Path(sys.prefix).resolve(),
        folder,
    ]
    mount += [sys.executable, "-m", f"tests.{program}", ROOT / "docs/deploy.md", folder]
    ended = subprocess.run(
        [*namespaces, *mount, find_litestream(), sysconfig.get_path("purelib")],
        check=False,
        capture_output=True,
        text=True,
        timeout=patience(600),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ended.stdout.endswith("deployed\n"), ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "unit", ["", "-publish", "-backup", "-doctor", "-push", "-receive@", "-purge"]
)
def test_a_unit_is_hardened(unit: str) -> None:
    """`systemd-analyze security` gives an exposure of at most 3.0."""
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=30", "--no-pager"]
    ended = subprocess.run(
        [*command, ROOT / "deploy" / f"fore-edge{unit}.service"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Overall exposure level" in ended.stdout + ended.stderr


@pytest.mark.size("quick")
@pytest.mark.parametrize("failing", ["", "--if-sqlite", "--all", "backup"])
def test_a_failed_copy_does_not_keep_the_archive_back(failing: str, tmp_path: Path) -> None:
    """Both backups of the unit are tried, and a failure of either is one of the unit."""
    text = (ROOT / "deploy/fore-edge-backup.service").read_text("utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith("ExecStart="))
    command, _, program = line.removeprefix("ExecStart=").replace("$$", "$").rpartition(" ")
    assert program.endswith("/bin/fore-edge")
    fake = tmp_path / "fore-edge"
    fake.write_text(
        f'#!/bin/sh\necho "$*" >>tried\ncase "$*" in *"{failing or "none"}"*) exit 3; esac\n'
    )
    fake.chmod(0o755)
    ended = subprocess.run(f"{command} {fake}", shell=True, check=False, cwd=tmp_path)  # noqa: S602
    tried = (tmp_path / "tried").read_text().splitlines()
    assert tried == ["backup --if-sqlite --keep 48", "backup --all --daily --keep 7"]
    assert ended.returncode == (3 if failing else 0)


@pytest.mark.size("quick")
def test_no_unit_runs_anything_as_root() -> None:
    """Each service has the journal's user, and no command has a prefix that takes that back."""
    units = sorted((ROOT / "deploy").glob("*.service"))
    assert units
    for unit in units:
        lines = unit.read_text("utf-8").splitlines()
        assert "User=journal" in lines
        commands = [line.partition("=")[2] for line in lines if line.startswith("Exec")]
        assert [each for each in commands if not each.startswith(("/usr/local/", "/bin/sh "))] == []
        assert not [line for line in lines if line.startswith("PermissionsStartOnly")]
