"""Names that a template asks for and nobody gives: noted with their place, and shown as nothing.

This is for templates of themes and operators. Ours are rendered with Jinja's StrictUndefined: there
such a name is a defect.
"""

from inspect import currentframe
from traceback import walk_stack

from jinja2 import ChainableUndefined

UnknownNames = dict[tuple[str, int, str], None]
"""File, line, and what is unknown there, each once."""


def note_unknown_names(found: UnknownNames) -> type[ChainableUndefined]:
    """Return what an environment takes as `undefined`, which notes in `found` where one is shown.

    Themes ask whether a setting is given that a site may leave out, or walk over it: no fault.
    """

    class Noted(ChainableUndefined):
        __slots__ = ()

        def __str__(self) -> str:
            for frame, line in walk_stack(currentframe()):
                if template := frame.f_globals.get("__jinja_template__"):  # as Jinja's own traces
                    is_file = template.filename != "<template>"  # Jinja's word for a text in memory
                    file = template.filename if is_file else template.name or ""
                    place = template.get_corresponding_lineno(line)
                    found[file, place, self._undefined_message] = None
                    break
            return ""

    return Noted
