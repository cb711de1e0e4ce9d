"""What holds for every test: properties are judged by what they find, not by how fast they do."""

import pytest
from hypothesis import HealthCheck, settings

from tests.own_journal import IS_OWN, NOTICE

# A neighbour that has the machine for a moment is no fault of the code: hypothesis's own bounds, of
# 200 ms an example and of how fast examples are drawn, would be timed assertions.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of this project's posts where those are not there."""
    if not IS_OWN:
        left_out = [item for item in items if item.get_closest_marker("own_posts")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line that tests were left out."""
    if not IS_OWN:
        terminalreporter.write_line(NOTICE)
