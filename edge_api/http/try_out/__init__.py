"""Swagger UI (brought by `tools/vendor_swagger.py`) and files of ours for `/docs/try/`."""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

_FOLDER: Final = "/theme/try/"  # below the site's own static files, whose names all carry a digest
STYLESHEETS: Final = ("swagger_ui/swagger-ui.css", "look.css")
SCRIPTS: Final = ("swagger_ui/swagger-ui-bundle.js", "start.js")
_DIGEST_LENGTH: Final = 12


@cache
def read_assets(names: tuple[str, ...]) -> Mapping[str, bytes]:
    """Return the files of these names by their URL paths, in this order."""
    found = {}
    for name in names:
        data = files(__package__).joinpath(name).read_bytes()
        stem, _, ending = name.rpartition("/")[2].rpartition(".")
        digest = hashlib.sha256(data).hexdigest()[:_DIGEST_LENGTH]
        found[f"{_FOLDER}{stem}.{digest}.{ending}"] = data
    return MappingProxyType(found)
