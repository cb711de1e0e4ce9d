"""The edge with a commit for each request: what grouping commits is measured against."""

import sys

from edge_api.__main__ import main
from edge_api.db import transaction as grouping

if __name__ == "__main__":
    grouping.MAX_GROUP_SIZE = 1  # type: ignore[misc]  # that is the point
    sys.exit(main(["serve"]))
