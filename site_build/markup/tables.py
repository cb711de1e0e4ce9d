"""Tables that scroll on their own, by keyboard too, and whose heads say what they head."""

from xml.etree.ElementTree import Element

SCROLLER = "table-scroll"
"""The class of what stands around a table. The table itself stays one for those who hear it:
one that scrolls by itself would need another `display`, and lose its rows and columns."""


def mend_tables(root: Element) -> None:
    """Put each table in a box that scrolls, and mend its cells."""
    for cell in list(root.iter("th")):
        _mend_head(cell)
    for name in ("td", "th"):
        for cell in root.iter(name):
            _align_by_class(cell)
    for table in list(root.iter("table")):
        _wrap(table)


def _wrap(table: Element) -> None:
    """Make `table` the box, since its parent is not known, and put a table like it inside.

    What can be reached by keyboard needs a role and a name (WCAG 2.2, 4.1.2); a group is no
    landmark, of which a page should have few.
    """
    inner = Element("table", table.attrib)
    inner.text, inner[:] = table.text, table[:]
    inner.tail = "\n"
    tail = table.tail
    table.clear()
    table.tag, table.text, table.tail = "div", "\n", tail
    table.attrib.update({"class": SCROLLER, "role": "group", "aria-label": "Table"})
    table.set("tabindex", "0")
    table.append(inner)


def _mend_head(cell: Element) -> None:
    """Say what a head is of; an empty one, as in a corner, heads nothing."""
    if not len(cell) and not (cell.text or "").strip():
        cell.tag = "td"
    elif "scope" not in cell.attrib:
        cell.set("scope", "col")


def _align_by_class(cell: Element) -> None:
    if alignment := cell.attrib.pop("align", None):
        cell.set("class", f"{cell.get('class', '')} align-{alignment}".strip())
