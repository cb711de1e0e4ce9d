"""The commands of `python -m edge_api`: they wire the parts together and speak to a terminal."""

import argparse
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Subparsers: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001
else:
    Subparsers = argparse._SubParsersAction  # noqa: SLF001  argparse has no public name for it
