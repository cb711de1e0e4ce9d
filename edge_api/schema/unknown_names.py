"""Unknown names in templates: each is noted with its place, and shown as an empty text.

This is for templates of other themes and of operators. Ours are rendered with Jinja's
StrictUndefined, since an unknown name in them is a defect.
"""

from inspect import currentframe
from traceback import walk_stack

from jinja2 import ChainableUndefined

UnknownNames = dict[tuple[str, int, str], None]
"""File, line and message of each unknown name, as keys, so that each is there once."""


def note_unknown_names(found: UnknownNames) -> type[ChainableUndefined]:
    """Return a class for an environment's `undefined`, which notes in `found` each rendered name.

    Names that are only tested or looped over are not noted, since a site may omit settings.
    """

    class NotingUndefined(ChainableUndefined):
        __slots__ = ()

        def __str__(self) -> str:
            for frame, line in walk_stack(currentframe()):
                # Jinja sets this global for its tracebacks.
                if template := frame.f_globals.get("__jinja_template__"):
                    is_file = template.filename != "<template>"  # a text without a file
                    file = template.filename if is_file else template.name or ""
                    place = template.get_corresponding_lineno(line)
                    found[file, place, self._undefined_message] = None
                    break
            return ""

    return NotingUndefined
