"""How much is judged: a quick part in every run of the tests, and the whole where it is asked for.

What only the whole has is not collected otherwise: nothing is skipped.
"""

import os

WHOLE = os.environ.get("PAGES_JUDGED") == "whole"
