"""Varnish in front of an edge, with the configuration and the receiver of purges in `deploy/`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.edge.edge_process import ROOT


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """End a process by SIGTERM."""
    with process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def varnish(folder: Path, port: int, purge_port: int, edge_port: int) -> Iterator[None]:
    """Run Varnish with the shipped configuration, in which the edge's port alone differs."""
    provided = subprocess.run(
        [ROOT / "tools" / "provide", "varnishd"], check=True, stdout=subprocess.PIPE, text=True
    )
    program = Path(provided.stdout.strip())
    shipped = (ROOT / "deploy" / "varnish.vcl").read_text()
    (folder / "edge.vcl").write_text(shipped.replace('.port = "8000"', f'.port = "{edge_port}"'))
    own = program.parents[1]
    libraries = ":".join(
        str(each) for found in own.glob("lib/*/varnish") for each in (found.parent, found)
    )
    command = [str(program), "-F", "-j", "none", "-T", "none", "-s", "malloc,256m"]
    places = ["-n", folder / "varnish", "-f", folder / "edge.vcl", "-a", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        [*command, *map(str, places), "-a", f"purge=127.0.0.1:{purge_port}"],
        env={**os.environ, "LD_LIBRARY_PATH": libraries},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with ended(process):
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "Child starts" in line:
                break
        else:
            raise AssertionError(said)
        yield


@contextmanager
def receiver(port: int, purge_port: int, secret: str) -> Iterator[None]:
    """Run the receiver of purges that operators take."""
    settings = {"PURGE_PORT": port, "VARNISH": f"127.0.0.1:{purge_port}", "PURGE_SECRET": secret}
    process = subprocess.Popen(
        [sys.executable, ROOT / "deploy" / "varnish_purge.py"],
        env={**os.environ, **{name: str(value) for name, value in settings.items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with ended(process):
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening")
        yield
