"""Makes as many real posts as asked for: a corpus, repeated with differences.

    python -m benchmarks.corpus 10000 content/ [--form yaml|pelican]

A copy has a slug, a title, a date and a first line of its own, so that no two posts are equal. The
form `pelican` writes the front matter that stock Pelican reads.
"""

import argparse
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, get_args

import frontmatter

Form = Literal["yaml", "pelican"]

_ROOT: Final = Path(__file__).resolve().parent.parent
_OWN: Final = _ROOT / "content" / "posts"


@dataclass(frozen=True, slots=True)
class Sample:
    """One post of the corpus."""

    slug: str
    title: str
    date: datetime
    tags: tuple[str, ...]
    summary: str
    body: str


def find_corpus() -> Path:
    """Return the folder of the shared posts, or of the journal's own where there are none."""
    shared = Path(os.environ.get("SHARED_DIR") or _ROOT.parent / "shared")
    posts = shared / "corpus" / "posts"
    return posts if any(posts.glob("*.md")) else _OWN


def describe_corpus() -> str:
    """Return a line that says from which posts the others are made."""
    folder = find_corpus()
    name = "the journal's own posts" if folder == _OWN else "the posts of the shared corpus"
    return f"made from {name} ({len(read_samples(folder))})"


def read_samples(folder: Path) -> list[Sample]:
    """Return the posts in `folder`, by file name."""
    return [_read(path) for path in sorted(folder.glob("*.md"))]


def _read(path: Path) -> Sample:
    post = frontmatter.load(str(path))
    date: Any = post["date"]
    tags: Any = post["tags"]
    moment = date if isinstance(date, datetime) else datetime(date.year, date.month, date.day)  # noqa: DTZ001
    return Sample(
        # Nine slugs of the corpus were cut badly: no address ends with a hyphen or has two.
        slug=re.sub("-+", "-", str(post["slug"])).strip("-"),
        title=str(post["title"]),
        date=moment if moment.tzinfo else moment.replace(tzinfo=UTC),
        tags=tuple(tags),
        summary=str(post.get("summary") or post["description"]),
        body=post.content,
    )


def repeat(samples: list[Sample], count: int) -> Iterator[Sample]:
    """Yield `count` posts that all differ."""
    for number in range(count):
        sample, round_ = samples[number % len(samples)], number // len(samples) + 1
        if round_ == 1:
            yield sample
            continue
        yield replace(
            sample,
            slug=f"{sample.slug}-printing-{round_}",
            title=f"{sample.title} ({round_})",
            date=sample.date - timedelta(hours=round_),
            body=f"Printing number {round_}.\n\n{sample.body}",
        )


def write_posts(folder: Path, count: int, form: Form = "yaml") -> None:
    """Write `count` posts into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    write = _write_yaml if form == "yaml" else _write_pelican
    for sample in repeat(read_samples(find_corpus()), count):
        (folder / f"{sample.slug}.md").write_text(write(sample), encoding="utf-8")


def _write_yaml(sample: Sample) -> str:
    head: dict[str, Any] = {
        "title": sample.title,
        "date": sample.date,
        "slug": sample.slug,
        "tags": list(sample.tags),
        "summary": sample.summary,
    }
    return f"{frontmatter.dumps(frontmatter.Post(sample.body, None, **head))}\n"


def _write_pelican(sample: Sample) -> str:
    head = (
        f"Title: {_flatten(sample.title)}\nDate: {sample.date:%Y-%m-%d %H:%M}\n"
        f"Slug: {sample.slug}\n"
        f"Tags: {', '.join(sample.tags)}\nSummary: {_flatten(sample.summary)}\n"
    )
    return f"{head}\n{sample.body}\n"


def _flatten(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def main() -> None:
    """Write the posts that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--form", choices=get_args(Form), default="yaml")
    options = parser.parse_args()
    print(f"{options.count:,} posts, {describe_corpus()}")
    write_posts(options.folder, options.count, options.form)


if __name__ == "__main__":
    main()
