"""HTML for strangers: what feeds and the API hand out is reduced to an allow-list here.

Consumers embed it in pages of their own, so nothing may run, nothing may be styled, and every
address is absolute. It knows neither Markdown nor files.
"""

import re

import nh3

from site_build.markup.accessibility import SCROLLER

_TAGS = """
a abbr aside b bdi bdo blockquote br caption cite code col colgroup dd del details dfn div dl
dt em figcaption figure h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q rp rt ruby s samp
section small strong sub summary sup table tbody td tfoot th thead time tr u ul var wbr
math menclose mfenced mfrac mi mlabeledtr mmultiscripts mn mo mover mpadded mphantom mprescripts
mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none
"""
_SILENCED = frozenset({"script", "style", "template", "iframe", "object", "noscript", "svg"})
"""Removed with all they hold; of other unknown elements the text stays."""

_ATTRIBUTES = {
    "*": {"dir", "lang", "title"},
    "a": {"href"},
    "col": {"span"},
    "colgroup": {"span"},
    "math": {"display"},
    "mo": {"fence", "form", "largeop", "movablelimits", "separator", "stretchy"},
    "mi": {"mathvariant"},
    "img": {"alt", "height", "src", "width"},
    "ol": {"reversed", "start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "time": {"datetime"},
}
_ALIGNMENTS = {"align-left", "align-center", "align-right"}
_CLASSES = {
    "div": {"admonition", "footnote", "highlight", "note", "tip", "warning", "danger", SCROLLER}
    | {"important", "caution"},
    "figure": {"code"},
    "p": {"admonition-title"},
    "td": _ALIGNMENTS,
    "th": _ALIGNMENTS,
}
_SCHEMES = {"http", "https", "mailto"}
_ANCHOR = re.compile(r'<a class="heading-anchor"[^>]*>#</a>')
"""The mark that the converter puts behind a heading; it means nothing outside the page."""

# HTML can name them by number, and no XML, so no feed, can carry them (XML 1.0, section 2.2).
_UNPRINTABLE = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f\\ufffe\\uffff]")


def sanitize(html: str, base_url: str) -> str:
    """Return `html` by the allow-list, relative addresses made absolute against `base_url`."""
    cleaned = nh3.clean(
        _ANCHOR.sub("", html),
        tags=set(_TAGS.split()),
        clean_content_tags=set(_SILENCED),
        attributes=_ATTRIBUTES,
        allowed_classes=_CLASSES,
        url_schemes=_SCHEMES,
        url_relative=("rewrite_with_base", base_url),
        link_rel="noopener",
    )
    return _UNPRINTABLE.sub("", cleaned)
