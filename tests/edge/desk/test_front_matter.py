"""The parts of a text that a form has."""

from edge_api.desk.front_matter import Parts, split


def test_no_text_takes_long_to_split() -> None:
    """An agent's draft is split by the process that serves everybody."""
    for line in ("     y\n", "  - a: b\n", " \n", "a: b\n", "-" * 80 + "\t\n"):
        text = f"Title: x\n{line * 5000}zzz\n"
        assert "".join(vars_of(split(text))) == text


def vars_of(parts: Parts) -> tuple[str, ...]:
    """Return the parts of a text in their order."""
    return parts.before, parts.head, parts.after, parts.text
