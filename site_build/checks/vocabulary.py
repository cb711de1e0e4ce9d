"""The elements and attributes of HTML, as far as it matters to what an author may write."""

from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


RAW: Final = _names("script style textarea title")
"""Elements whose content is no markup (HTML, section 13.1.2)."""
FOREIGN: Final = _names("svg math")
"""Elements with a vocabulary of their own."""
VOID: Final = _names("area base br col embed hr img input link meta param source track wbr")
"""Elements without an end tag (HTML, section 13.1.2)."""
CLOSED_BY_OTHERS: Final = _names(
    "p li dt dd tr td th thead tbody tfoot colgroup option optgroup rp rt"
)
"""Elements whose end tag may be left out (HTML, section 13.1.2.4)."""
TABLE_PARTS: Final = _names("caption col colgroup tbody td tfoot th thead tr")
"""Elements that browsers drop outside of a table."""
OF_PAGES: Final = _names("html head body")
"""Elements that a page has once, around all others."""
OTHERS: Final = _names(
    "a abbr address article aside audio b bdi bdo blockquote body button canvas caption cite "
    "code data datalist del details dfn dialog div dl em fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 head header hgroup html i iframe ins kbd label legend main map "
    "mark menu meter nav noscript object ol output picture pre progress q ruby s samp search "
    "section select slot small span strong sub summary sup table template time u ul var video"
)
ELEMENTS: Final = RAW | FOREIGN | VOID | CLOSED_BY_OTHERS | OTHERS
"""Every element of HTML that is not obsolete."""
ENDS_PARAGRAPH: Final = _names(
    "address article aside blockquote details dialog div dl fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hgroup hr main menu nav ol p pre search section table ul"
)
"""Elements that no paragraph can hold: it ends where one begins."""
OBSOLETE: Final = _names(
    "acronym applet basefont bgsound big blink center dir font frame frameset marquee nobr "
    "noembed noframes plaintext rb rtc spacer strike tt xmp"
)
"""Elements that must not be used any more (HTML, section 16.2)."""
OBSOLETE_ATTRIBUTES: Final = _names(
    "align alink allowtransparency background bgcolor border cellpadding cellspacing clear "
    "compact frameborder hspace language link marginheight marginwidth noshade nowrap scrolling "
    "valign vlink vspace"
)
"""Attributes that must not be used any more, on whatever element (HTML, section 16.2)."""
