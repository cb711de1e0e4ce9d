"""Which posts are close: by the cosine between their terms, each weighed by its rarity.

Terms that many posts share tell little and would cost most, so only the rarest are followed, as
many as keep the work in proportion to the number of posts.
"""

import hashlib
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from heapq import nsmallest
from itertools import chain
from math import hypot, log
from typing import Final, TypeAlias
from zlib import crc32

from site_build.cache import Cache, make_key
from site_build.parallel import in_background
from site_build.site import Document

MOST_TERMS: Final = 64
"""Of one post, the most frequent ones: the others say little and cost as much."""

_IN_TITLE, _IN_DESCRIPTION, _AS_TAG = 3, 2, 4
"""How often a term counts that stands there."""

_COUNT_BITS: Final = 8
LARGEST_COUNT: Final = (1 << _COUNT_BITS) - 1

_CODE: Final = re.compile(
    r"^ {0,3}(?P<mark>`{3,}+|~{3,}+).*(?:\n.*)*?(?:\n {0,3}(?P=mark).*|\Z)", re.MULTILINE
)
"""A block of code, which ends at the latest with the text."""
_NOISE: Final = re.compile(r"\]\([^)\s]*|https?://\S+|<[^<>]*>|`[^`\n]*`|&#?\w{1,10};")
_WORD: Final = re.compile(r"[^\W\d_]{4,40}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,40}")
_DENSE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
"""Of scripts that put no blanks between words: there, two signs at a time are a term."""

Terms: TypeAlias = "array[int]"
"""For each term its number and, in the lowest 8 bits, its count."""

NO_TERMS: Final[Terms] = array("Q")


def count_terms(document: Document) -> Terms:
    """Return the terms of a post and their counts, the most frequent first."""
    counts = Counter(_list_words(_CODE.sub("", document.markdown)))
    for text, weight in ((document.title, _IN_TITLE), (document.description, _IN_DESCRIPTION)):
        for word in _list_words(text):
            counts[word] += weight
    ranked = sorted(counts.items(), key=lambda term: (-term[1], term[0]))[:MOST_TERMS]
    terms = [*((f"#{tag.casefold()}", _AS_TAG) for tag in document.tags), *ranked]
    numbers = (
        crc32(name.encode()) << _COUNT_BITS | min(count, LARGEST_COUNT) for name, count in terms
    )
    return array("Q", numbers)


def unpack(terms: Terms) -> tuple[list[int], list[int]]:
    """Return the numbers of the terms, and their counts from 1 to LARGEST_COUNT."""
    counts = [term & LARGEST_COUNT for term in terms]
    return [term >> _COUNT_BITS for term in terms], counts


def _list_words(text: str) -> list[str]:
    """Return the words, or pairs of signs where the script has no blanks between words."""
    words: list[str] = _WORD.findall(_NOISE.sub(" ", text).casefold())
    if not _DENSE.search(text):
        return words
    pairs = ([word[at : at + 2] for at in range(len(word) - 1)] for word in words)
    return [
        part
        for word, parts in zip(words, pairs, strict=True)
        for part in (parts if _DENSE.match(word) else [word])
    ]


MOST_CLOSE: Final = 12
"""Posts found for each: of them a page leaves out those that it links anyway."""
LEAST_CLOSENESS: Final = 0.09
"""Cosine below which two posts have little more in common than their language."""

_FEW: Final = 800
"""Posts that are related sooner than a process is started for them."""

_STAGE: Final = "related"
_DAMPED: Final = (0.0, *(1 + log(count) for count in range(1, LARGEST_COUNT + 1)))
"""What a term's count adds to its weight."""

Vector: TypeAlias = list[tuple[int, float]]
"""Terms with their weights; the whole has length 1."""


Related: TypeAlias = dict[str, tuple[str, ...]]
"""Paths of the posts close to each, by its path."""


@contextmanager
def relating(
    cache: Cache, code: str, posts: Sequence[Document], terms: Mapping[str, Terms], jobs: int = 1
) -> Iterator[Callable[[], Related]]:
    """Have `find_related` at work, or its cached outcome; yields what waits for the outcome."""
    order = [(post.path, post.published.timestamp(), post.slug) for post in posts]
    about = b"".join(terms[post.path].tobytes() + b"." for post in posts)
    key = make_key(code, order, hashlib.sha256(about).hexdigest())
    kept = cache.get(_STAGE, key)
    if isinstance(kept, dict):
        yield lambda: kept
        return

    with in_background(
        partial(find_related, posts, terms), jobs if len(posts) > _FEW else 1
    ) as found:

        def keep() -> Related:
            related = found()
            cache.put(_STAGE, [(key, related)])
            cache.keep_only(_STAGE, [key])
            return related

        yield keep


def find_related(posts: Sequence[Document], terms: Mapping[str, Terms]) -> Related:
    """Return up to twelve posts for each, the closest first; `terms` are by path.

    Of posts that are equally close the newer one goes first, then the slug decides.
    """
    order = sorted(posts, key=lambda post: (-post.published.timestamp(), post.slug))
    vectors = _weigh([terms[post.path] for post in order])
    holders: defaultdict[int, Vector] = defaultdict(list)
    for number, vector in enumerate(vectors):
        for term, weight in vector:
            holders[term].append((number, weight))
    return {
        post.path: tuple(order[each].path for each in _find_closest(number, vector, holders))
        for number, (post, vector) in enumerate(zip(order, vectors, strict=True))
    }


def _find_closest(number: int, vector: Vector, holders: Mapping[int, Vector]) -> list[int]:
    """Return the posts close to one; `holders` has, by term, who holds it and its weight there."""
    closeness: dict[int, float] = {}
    so_far = closeness.get  # This is what takes longest: two hundred times for each post.
    for term, weight in vector:
        for other, its_weight in holders[term]:
            closeness[other] = so_far(other, 0.0) + weight * its_weight
    closeness.pop(number, None)
    near = [(-score, other) for other, score in closeness.items() if score >= LEAST_CLOSENESS]
    return [other for _, other in nsmallest(MOST_CLOSE, near)]


def _weigh(terms: Iterable[Terms]) -> list[Vector]:
    """Return a vector for each post, of the terms that are followed.

    Rarer terms weigh more, repeated ones a little more. What one post has for itself counts
    towards its length alone, as if another had it too: it should not drown what they share.
    """
    counted = [unpack(each) for each in terms]
    frequency = Counter(chain.from_iterable(names for names, _ in counted))
    total = len(counted)
    rarity = {term: log(total / max(count, 2)) for term, count in frequency.items()}
    # So often may a post meet others, on the average: once in each term that they share.
    most = _find_bound(Counter(frequency.values()), 200 * total)
    followed = {term for term, count in frequency.items() if 1 < count <= most}
    vectors = []
    for names, counts in counted:
        weights = [rarity[name] * _DAMPED[count] for name, count in zip(names, counts, strict=True)]
        length = hypot(*weights) or 1.0
        shares = zip(names, weights, strict=True)
        vectors.append([(name, weight / length) for name, weight in shares if name in followed])
    return vectors


def _find_bound(sizes: Mapping[int, int], steps: int) -> int:
    """Return up to how many holders terms are followed, so that all stay within `steps`.

    `sizes` says how many terms have how many holders; each holder meets each other.
    """
    bound = 0
    for size, count in sorted(sizes.items()):
        steps -= size * size * count if size > 1 else 0
        if steps < 0:
            break
        bound = size
    return bound
