"""Takes what running needs from `requirements/run.in` into the wheel and the sdist.

Hatchling, which builds both, loads it as `pyproject.toml` says.
"""

from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

SOURCE = "requirements/run.in"


class Requirements(MetadataHookInterface):
    """Adds the requirements to the metadata of the distribution."""

    def update(self, metadata: dict[str, object]) -> None:
        """Set the dependencies, one for each line that is neither empty nor a comment."""
        lines = Path(self.root, SOURCE).read_text(encoding="utf-8").splitlines()
        metadata["dependencies"] = [line for line in lines if line and not line.startswith("#")]
