"""Settings of every test: properties are judged by what they find, not by how fast they do."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.own_journal import IS_OWN, NOTICE
from tests.sizes import DEFAULT, FOUND, SIZES, choose, is_run, size_of_file

# A neighbour that has the machine for a moment is no fault of the code: hypothesis's own bounds, of
# 200 ms an example and of how fast examples are drawn, would be timed assertions.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for the size of the run, and of the run before it."""
    parser.addoption("--size", choices=SIZES, default=DEFAULT, help=f"default: {DEFAULT}")
    parser.addoption(
        "--above", choices=SIZES, help="leave out what a run of this size has had, unless it grows"
    )


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder with a short name: the path of a socket has 108 bytes at most."""
    return tmp_path_factory.mktemp(re.sub(r"\W", "_", request.node.name)[:12])


def pytest_configure(config: pytest.Config) -> None:
    """Choose the size before test modules are imported, since they have numbers of it."""
    choose(config.getoption("size"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a file whose tests are all of a larger size: that is slow (decision 37)."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    size = size_of_file(collection_path.read_text(encoding="utf-8"))
    return True if SIZES.index(size) > SIZES.index(config.getoption("size")) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is of a larger size, or about posts of this project that are not there."""
    size, above = config.getoption("size"), config.getoption("above")
    found = {item.nodeid: list(item.iter_markers("size")) for item in items}
    config.stash[FOUND] = found
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        is_ours = IS_OWN or not item.get_closest_marker("own_posts")
        (kept if is_ours and is_run(found[item.nodeid], size, above) else left_out).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line that tests were left out."""
    if not IS_OWN:
        terminalreporter.write_line(NOTICE)
