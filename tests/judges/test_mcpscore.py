"""mcpscore, which judges MCP servers by points, over https as a client on the net sees the edge."""

import asyncio
import json
import os
import ssl
from pathlib import Path
from typing import Any

import pytest
from pytest_aiohttp import AiohttpServer

from benchmarks.peers.environment import prepare
from tests.edge.certificates import write_certificate
from tests.edge.conftest import CONTENT, run_build
from tests.edge.edge_process import Installation, free_port
from tests.judges.bearer_proxy import make_bearer_proxy
from tests.judges.product import ALL_SCOPES, MCP_PATH, Product
from tests.patience import patience

pytestmark = pytest.mark.size("judge")

_NO_PUSH = "revisions with a handshake have no stream here to tell of a change on"
ACCEPTED = {
    "capability_tools_list_changed": _NO_PUSH,
    "capability_prompts_list_changed": _NO_PUSH,
    "capability_resources_list_changed": _NO_PUSH,
}
"""Lost points by rule, one each, and why each is true of no server like this one."""
RULES_OF_SKILLS = 16


async def judge(url: str, token: str, certificate: Path, folder: Path) -> dict[str, Any]:
    """Return the report on the server at `url`."""
    process = await asyncio.create_subprocess_exec(
        str(await asyncio.to_thread(prepare, "judge") / "mcpscore"),
        url,
        "--no-config",
        "--json",
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "MCPSCORE_TOKEN": token,
            "SSL_CERT_FILE": str(certificate),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, complained = await asyncio.wait_for(process.communicate(), patience(150))
    assert process.returncode == 0, complained.decode()
    report: dict[str, Any] = json.loads(said)
    return report


async def test_mcpscore_finds_no_true_fault(aiohttp_server: AiohttpServer, tmp_path: Path) -> None:
    """Every rule that applies passes but those with a reason, the rules of skills among them."""
    port, front = free_port(), free_port()
    origin = f"https://localhost:{front}"
    await asyncio.to_thread(run_build, CONTENT, tmp_path / "build", site_url=origin)
    settings = {
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
        "BUILD_DIR": str(tmp_path / "build"),
        "SITE_URL": origin,
        **dict.fromkeys(("RATE_AUTHENTICATED", "RATE_FAILED_AUTH"), "0"),
    }
    certificate = write_certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    served = Installation(tmp_path, settings)
    with served.serving():
        proxy = make_bearer_proxy(f"http://127.0.0.1:{port}", None)
        await aiohttp_server(proxy, host="localhost", port=front, ssl=context)
        token = await asyncio.to_thread(Product(served, origin).issue, "access_token", ALL_SCOPES)
        report = await judge(f"{origin}{MCP_PATH}", token, certificate[0], tmp_path)

    passed = {each["rule_id"]: each["passed"] for each in report["results"]}
    lost = {rule for rule, holds in passed.items() if not holds}
    skills = [rule for rule in passed if rule.startswith("skills_")]
    assert lost == set(ACCEPTED)
    assert report["max_score"] - report["score"] == len(ACCEPTED)
    assert report["max_score"] >= 288
    assert report["readiness"]["score"] == report["readiness"]["max_score"]
    assert len(skills) >= RULES_OF_SKILLS
    assert not report["partial"]
