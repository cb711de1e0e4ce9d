"""schemathesis, which knows of the service what its OpenAPI document says and nothing else."""

import asyncio
import os
import sys
from pathlib import Path

from tests.patience import patience
from tests.sizes import scaled

EXAMPLES = scaled(test=1, ci=10, judge=200)
"""For each operation."""
CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
HOOKS = Path(__file__).with_name("schemathesis_hooks.py")
SECONDS = 3000


async def fuzz(url: str, folder: Path, *options: str) -> str:
    """Return what schemathesis says: all phases unless the options say which."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        *("--config-file", str(CONFIGURATION)),
        "run",
        f"{url}/api/public/v1/openapi.json",
        # All checks are on by default; `--checks all` would undo what the configuration turns off.
        *("--url", url, "--max-examples", str(EXAMPLES), "--no-color"),
        *("--request-timeout", f"{patience():.0f}"),
        *options,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
        env={**os.environ, "SCHEMATHESIS_HOOKS": str(HOOKS)},
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return f"{said.decode()}\nexit {process.returncode}"
