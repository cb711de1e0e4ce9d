"""The project's own settings for Pelican, but that a name which templates are not given fails."""

import sys
from pathlib import Path
from typing import cast

from jinja2 import StrictUndefined

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from pelicanconf import *  # noqa: E402, F403 - a settings file is its names
from pelicanconf import JINJA_ENVIRONMENT  # noqa: E402

cast("dict[str, object]", JINJA_ENVIRONMENT)["undefined"] = StrictUndefined
THEME = str(ROOT / "theme")
