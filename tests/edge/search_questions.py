"""Questions to the posts of the corpus, and the posts that answer them, chosen by hand.

Of several answers any will do. The questions without the corpus are over the posts in `content/`.
"""

from collections.abc import Mapping
from types import MappingProxyType

QUESTIONS: Mapping[str, str] = MappingProxyType(
    {
        # A subject, in one word or more.
        "const generics": "const-generics-mvp-hits-beta splitting-the-const-generics-features "
        "lang-team-design-meeting-minimal-const-generics",
        "GATs": "the-push-for-gats-stabilization "
        "generic-associated-types-to-be-stable-in-rust-1-65",
        "phishing": "crates-io-phishing-campaign",
        "kanban": "kanban-for-government",
        "symbol mangling v0": "switching-to-rust-s-own-mangling-scheme-on-nightly",
        "lld linker": "faster-linking-times-with-1-90-0-stable-on-linux-using-the-lld-linker "
        "faster-linking-times-on-nightly-on-linux-using-rust-lld",
        "ripgrep link time": "faster-linking-times-on-nightly-on-linux-using-rust-lld "
        "faster-linking-times-with-1-90-0-stable-on-linux-using-the-lld-linker",
        "hashbrown swisstable": "announcing-rust-1-36-0",
        "cots": "when-to-use-commercial-off-the-shelf-cots-technology",
        # A name.
        "sandi metz": "5-lessons-in-object-oriented-design-from-sandi-metz",
        "bechdel": "does-18f-pass-the-bechdel-test-for-tech",
        "aaron hill": "congrats-to-compiler-team-member-aaron-hill",
        "rustdecimal": "security-advisory-malicious-crate-rustdecimal",
        # A number, a version.
        "1.45.2": "announcing-rust-1-45-2",
        "rustup 1.24.1": "announcing-rustup-1-24-1",
        "CVE-2022-24713": "security-advisory-for-the-regex-crate-cve-2022-24713",
        "musl 1.2.5 targets": "updating-rust-s-linux-musl-targets-to-1-2-5",
        # Code, and what a compiler says.
        "std::thread::scope": "announcing-rust-1-63-0",
        "dbg!": "announcing-rust-1-32-0",
        "is_some_and": "announcing-rust-1-70-0",
        "CARGO_INCREMENTAL": "announcing-rust-1-52-1",
        "--check-cfg": "automatic-checking-of-cfgs-at-compile-time announcing-rust-1-80-0",
        "wasm32-unknown-unknown": "c-abi-changes-for-wasm32-unknown-unknown",
        "error[E0597] borrowed value does not live long enough": "announcing-rust-1-21 "
        "non-lexical-lifetimes-nll-fully-stable announcing-rust-1-31-and-rust-2018 "
        "shape-of-errors-to-come",
        # Words that are not all there, or in another form.
        "should I commit Cargo.lock": "change-in-guidance-on-committing-lockfiles",
        "batch files command injection windows": "announcing-rust-1-77-2 "
        "security-advisory-for-the-standard-library-cve-2024-24576 "
        "security-advisory-for-the-standard-library-cve-2024-43402",
        "moderators resigned": "in-response-to-the-moderation-team-resignation",
        "kids coding": "the-day-90-kids-came-to-code-with-18f",
        "style guide for readme documentation": "18f-s-style-guide-for-open-source-project-"
        "documentation readmes-for-you-and-me",
        "vote.gov multilingual": "usa-gov-updates-vote-gov-now-it-s-leaner-faster-and-"
        "multi-lingual",
        "how do I recruit employees": "ask-18f-how-do-you-recruit-employees",
        "women in tech representation test": "does-18f-pass-the-bechdel-test-for-tech",
        # Two subjects, a phrase, a plural.
        "elasticsearch rails": "how-we-get-high-availability-with-elasticsearch-and-ruby-on-rails",
        '"fearless concurrency"': "fearless-concurrency-with-rust",
        "spreadsheets formulas": "three-ways-to-write-fearless-spreadsheet-formulas",
        "security advisories regex": "security-advisory-for-the-regex-crate-cve-2022-24713",
        # Misspelt.
        "borow cheker": "completing-the-transition-to-the-new-borrow-checker "
        "enabling-the-next-iteration-of-the-borrow-checker-on-nightly",
        "technicl debt": "preventing-technical-debt "
        "don-t-underestimate-the-danger-of-technical-debt",
        "pepperonni piza": "how-a-pepperoni-pizza-inspires-open-government",
        "scaning secrets in repositories": "automated-scanning-for-sensitive-information-in-the-"
        "development-lifecy",
        "polonious": "polonius-update",
        # In scripts without spaces: part of a word, one letter.
        "二手掉包": "announcing-rustup-1-24-0 announcing-rustup-1-24-1 announcing-rustup-1-24-2 "
        "announcing-rustup-1-24-3 announcing-rustup-1-25-0 announcing-rustup-1-26-0 "
        "announcing-rustup-1-27-0",
        "返回": "contribute-to-the-diagnostic-translation-effort",
        "错": "contribute-to-the-diagnostic-translation-effort",
    }
)
"""Slugs by question, with spaces between them."""
OWN_QUESTIONS: Mapping[str, str] = MappingProxyType(
    {
        "painted edges": "first-edge",
        "marbeld papers": "marbled-paper",
        "sewing unheard": "sewing-and-folding",
        "紙": "sewing-and-folding",
    }
)
