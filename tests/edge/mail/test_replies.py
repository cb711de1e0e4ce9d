from itertools import product
from typing import get_args

import pytest

from edge_api.mail.delivery import RefusalKind, classify
from edge_api.mail.transports import MailRefusal, Stage

STAGES: tuple[Stage, ...] = get_args(Stage)

CASES: list[tuple[Stage, int | None, str, RefusalKind]] = [
    # Nothing was said, or nothing about this message.
    ("connect", None, "", "retry"),
    ("connect", 421, "", "retry"),
    ("connect", 421, "4.3.2", "retry"),
    ("connect", 554, "5.3.2", "retry"),
    ("data", None, "", "retry"),
    # Later.
    ("sender", 421, "4.4.2", "retry"),
    ("sender", 450, "4.1.8", "retry"),
    ("sender", 451, "4.3.0", "retry"),
    ("sender", 452, "4.3.1", "retry"),
    ("recipient", 421, "", "retry"),
    ("recipient", 452, "4.2.2", "retry"),
    ("data", 450, "4.2.0", "retry"),
    ("data", 451, "", "retry"),
    ("data", 454, "4.3.0", "retry"),
    # Greylisting speaks at the recipient.
    ("recipient", 450, "", "greylisted"),
    ("recipient", 451, "", "greylisted"),
    ("recipient", 450, "4.2.0", "greylisted"),
    ("recipient", 451, "4.7.1", "greylisted"),
    ("recipient", 450, "4.7.0", "greylisted"),
    ("recipient", 452, "4.7.1", "greylisted"),
    ("data", 451, "4.7.1", "greylisted"),
    # Slower.
    ("connect", 421, "4.7.0", "rate_limited"),
    ("connect", 454, "4.7.0", "rate_limited"),
    ("login", 454, "4.7.0", "rate_limited"),
    ("sender", 421, "4.7.28", "rate_limited"),
    ("sender", 450, "4.7.1", "rate_limited"),
    ("recipient", 421, "4.7.0", "rate_limited"),
    ("data", 454, "4.7.0", "rate_limited"),
    ("data", 429, "", "rate_limited"),
    # No such mailbox.
    ("recipient", 550, "5.1.1", "bounced"),
    ("recipient", 551, "5.1.6", "bounced"),
    ("recipient", 553, "5.1.3", "bounced"),
    ("recipient", 554, "5.1.2", "bounced"),
    ("recipient", 556, "5.1.10", "bounced"),
    ("data", 550, "5.1.1", "bounced"),
    # About us, the message or a policy.
    ("recipient", 550, "", "refused"),
    ("recipient", 550, "5.1.0", "refused"),
    ("recipient", 530, "5.7.0", "refused"),
    ("data", 530, "5.7.0", "refused"),
    ("recipient", 550, "5.1.7", "refused"),
    ("recipient", 550, "5.1.8", "refused"),
    ("recipient", 550, "5.2.1", "refused"),
    ("recipient", 550, "5.7.1", "refused"),
    ("recipient", 552, "5.2.2", "refused"),
    ("recipient", None, "5.6.7", "refused"),
    ("recipient", None, "5.1.3", "refused"),
    ("sender", 550, "5.1.1", "refused"),
    ("sender", 553, "5.1.8", "refused"),
    ("data", 550, "5.7.26", "refused"),
    ("data", 552, "", "refused"),
    ("data", 554, "5.6.0", "refused"),
    ("data", 554, "5.1.1", "refused"),
    # A matter for the operator.
    ("login", 535, "5.7.8", "login"),
    ("login", 534, "5.7.9", "login"),
    ("login", None, "", "login"),
    ("login", 454, "", "login"),
    ("sender", 530, "5.7.0", "login"),
    ("sender", 530, "", "login"),
    ("connect", 530, "5.7.0", "login"),
    ("login", 538, "5.7.11", "login"),
]


def verdict(stage: Stage, code: int | None, enhanced: str) -> RefusalKind:
    """Return what a refusal is judged to be."""
    return classify(MailRefusal(stage, code, enhanced, "the relay refused it"))


@pytest.mark.parametrize(("stage", "code", "enhanced", "expected"), CASES)
def test_the_code_of_a_refusal_decides_its_handling(
    stage: Stage, code: int | None, enhanced: str, expected: RefusalKind
) -> None:
    """Stage and codes make the verdict."""
    assert verdict(stage, code, enhanced) == expected


def test_every_verdict_is_given_to_something() -> None:
    """The cases above have every verdict and every stage in them."""
    assert {expected for *_, expected in CASES} == set(get_args(RefusalKind))
    assert {stage for stage, *_ in CASES} == set(STAGES)


def test_only_a_permanent_word_about_the_mailbox_counts_against_an_address() -> None:
    """Among the codes at all stages, only 5XX with 5.1.X, of recipient or message, bounces."""
    codes = [None, 250, 399, *range(420, 460), 500, *range(530, 560), 571, 599]
    enhanced = ["", *(f"{a}.{b}.{c}" for a, b, c in product((2, 4, 5), range(8), range(12)))]
    bounced = {
        (stage, code, status)
        for stage, code, status in product(STAGES, codes, enhanced)
        if verdict(stage, code, status) == "bounced"
    }

    assert {stage for stage, _, _ in bounced} == {"recipient", "data"}
    assert all(code is not None and 500 <= code <= 599 for _, code, _ in bounced)
    assert all(status.startswith("5.1.") for _, _, status in bounced)
    assert not {"5.1.7", "5.1.8", "5.1.9"} & {status for _, _, status in bounced}


def test_a_temporary_code_gives_up_no_message() -> None:
    """No 4XX, at any stage and with any code beside it, is the end of a message."""
    enhanced = ["", *(f"4.{b}.{c}" for b, c in product(range(8), (0, 1, 2, 28)))]
    verdicts = {verdict(*case) for case in product(STAGES, range(400, 500), enhanced)}

    assert verdicts == {"retry", "greylisted", "rate_limited", "login"}
