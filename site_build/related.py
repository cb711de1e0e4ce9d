"""Finds related posts by the cosine similarity of their terms, of which rarer ones weigh more.

Terms that many posts share say little and take most time. So only the rarest are compared, as many
as keep the time in proportion to the number of posts.
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
from site_build.site import Document, Site

MOST_TERMS: Final = 64
"""The most frequent terms of a post; the others say little and take as much time."""

_COUNT_BITS: Final = 8
LARGEST_COUNT: Final = (1 << _COUNT_BITS) - 1

_CODE: Final = re.compile(
    r"^ {0,3}(?P<mark>`{3,}+|~{3,}+).*(?:\n.*)*?(?:\n {0,3}(?P=mark).*|\Z)", re.MULTILINE
)
"""A block of code, which ends with its fence or with the text."""
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
"""A character of a script without spaces between words; each pair of such characters is a term."""

Terms: TypeAlias = "array[int]"
"""Terms of a post: for each, its number and, in the lowest 8 bits, its count."""

NO_TERMS: Final[Terms] = array("Q")


def count_terms(document: Document) -> Terms:
    """Return the terms of a post and their counts, the most frequent first."""
    counts = Counter(_list_words(_CODE.sub("", document.markdown)))
    # A word counts thrice in the title and twice in the description, and a tag four times.
    for text, weight in ((document.title, 3), (document.description, 2)):
        for word in _list_words(text):
            counts[word] += weight
    ranked = sorted(counts.items(), key=lambda term: (-term[1], term[0]))[:MOST_TERMS]
    terms = [*((f"#{tag.casefold()}", 4) for tag in document.tags), *ranked]
    numbers = (
        crc32(name.encode()) << _COUNT_BITS | min(count, LARGEST_COUNT) for name, count in terms
    )
    return array("Q", numbers)


def unpack(terms: Terms) -> tuple[list[int], list[int]]:
    """Return the numbers of the terms, and their counts from 1 to LARGEST_COUNT."""
    return [term >> _COUNT_BITS for term in terms], [term & LARGEST_COUNT for term in terms]


def _list_words(text: str) -> list[str]:
    """Return the words, or pairs of characters if the script has no spaces between words."""
    words: list[str] = re.findall(
        r"[^\W\d_]{4,40}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,40}",
        # Addresses, HTML tags, code and entities are no words.
        re.sub(r"\]\([^)\s]*|https?://\S+|<[^<>]*>|`[^`\n]*`|&#?\w{1,10};", " ", text).casefold(),
    )
    if not _UNSPACED.search(text):
        return words
    pairs = ([word[at : at + 2] for at in range(len(word) - 1)] for word in words)
    return [
        part
        for word, parts in zip(words, pairs, strict=True)
        for part in (parts if _UNSPACED.match(word) else [word])
    ]


MOST_RELATED: Final = 12
"""The most related posts that are found for a post; a page shows a few of them."""
LEAST_CLOSENESS: Final = 0.09
"""The cosine similarity below which two posts share little more than their language."""

_SEQUENTIAL_POSTS: Final = 800
"""The number of posts up to which comparing them takes less time than starting a process."""

_STAGE: Final = "related"
_COUNT_FACTORS: Final = (0.0, *(1 + log(count) for count in range(1, LARGEST_COUNT + 1)))
"""Factors of a term's weight, by its count; computing them anew for each term is 25 % slower."""

Vector: TypeAlias = list[tuple[int, float]]
"""Pairs of a term's number and its weight; with all terms of the post, its length would be 1."""


Related: TypeAlias = dict[str, tuple[str, ...]]
"""Paths of the related posts of each post, by its path."""


@contextmanager
def find_related_in_background(
    cache: Cache,
    code_digest: str,
    posts: Sequence[Document],
    terms: Mapping[str, Terms],
    jobs: int = 1,
) -> Iterator[Callable[[], Related]]:
    """Run `find_related` in the background, unless its result is cached.

    Yields a function that waits for the result and returns it.
    """
    order = [(post.path, post.published.timestamp(), post.slug) for post in posts]
    all_terms = b"".join(terms[post.path].tobytes() + b"." for post in posts)
    key = make_key(code_digest, order, hashlib.sha256(all_terms).hexdigest())
    kept = cache.get(_STAGE, key)
    if isinstance(kept, dict):
        yield lambda: kept
        return

    with in_background(
        partial(find_related, posts, terms), jobs if len(posts) > _SEQUENTIAL_POSTS else 1
    ) as found:

        def keep() -> Related:
            related = found()
            cache.put(_STAGE, [(key, related)])
            cache.keep_only(_STAGE, [key])
            return related

        yield keep


def find_related(posts: Sequence[Document], terms: Mapping[str, Terms]) -> Related:
    """Return up to twelve related posts for each, the closest first; `terms` are by path.

    Equally close posts are sorted by date, the newest first, and then by slug.
    """
    order = sorted(posts, key=lambda post: (-post.published.timestamp(), post.slug))
    vectors = _make_vectors([terms[post.path] for post in order])
    postings: defaultdict[int, Vector] = defaultdict(list)
    for number, vector in enumerate(vectors):
        for term, weight in vector:
            postings[term].append((number, weight))
    return {
        post.path: tuple(order[each].path for each in _find_closest(number, vector, postings))
        for number, (post, vector) in enumerate(zip(order, vectors, strict=True))
    }


def choose_related(site: Site, index: int, near: Sequence[str]) -> list[str]:
    """Return the paths of the three posts to show beside the post at `index` of the site's posts.

    `near` are the closest ones. Its neighbours and the parts of its series are left out.
    """
    posts, parts = site.posts, site.parts
    beside = {each.path for each in posts[max(0, index - 1) : index + 2]}
    others = [path for path in near if path not in beside]
    if part := parts.get(posts[index].path):
        series = part.series
        others = [path for path in others if path not in parts or parts[path].series != series]
    return others[:3]


def _find_closest(number: int, vector: Vector, postings: Mapping[int, Vector]) -> list[int]:
    """Return the numbers of the posts closest to a post, the closest first.

    `postings` are lists of pairs by term: the number of a post that has it, and its weight there.
    """
    closeness: dict[int, float] = {}
    so_far = closeness.get  # A local name, since this loop takes most of the time.
    for term, weight in vector:
        for other, its_weight in postings[term]:
            closeness[other] = so_far(other, 0.0) + weight * its_weight
    closeness.pop(number, None)
    near = [(-score, other) for other, score in closeness.items() if score >= LEAST_CLOSENESS]
    return [other for _, other in nsmallest(MOST_RELATED, near)]


def _make_vectors(terms: Iterable[Terms]) -> list[Vector]:
    """Return a vector for each post, with the weights of the terms that are compared.

    Rarer terms weigh more, and repeated ones a little more. A term of a single post affects only
    the length of the vector, as if two posts had it, so that it does not outweigh shared terms.
    """
    counted = [unpack(each) for each in terms]
    frequency = Counter(chain.from_iterable(names for names, _ in counted))
    total = len(counted)
    rarity = {term: log(total / max(count, 2)) for term, count in frequency.items()}
    # On average, a post is compared with others 200 times: once for each term that they share.
    most = _find_bound(Counter(frequency.values()), 200 * total)
    compared = {term for term, count in frequency.items() if 1 < count <= most}
    vectors = []
    for names, counts in counted:
        weights = [
            rarity[name] * _COUNT_FACTORS[count] for name, count in zip(names, counts, strict=True)
        ]
        length = hypot(*weights) or 1.0
        weighted = zip(names, weights, strict=True)
        vectors.append([(name, weight / length) for name, weight in weighted if name in compared])
    return vectors


def _find_bound(sizes: Mapping[int, int], steps: int) -> int:
    """Return the most posts that a term may have, so that all comparisons take at most `steps`.

    `sizes` has the number of terms by their number of posts. A term makes each of its posts be
    compared with each other.
    """
    bound = 0
    for size, count in sorted(sizes.items()):
        steps -= size * size * count if size > 1 else 0
        if steps < 0:
            break
        bound = size
    return bound
