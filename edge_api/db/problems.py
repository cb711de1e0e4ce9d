"""The closed list of problems that a client may get, and `Problem`, the exception for them.

Code that finds an error raises `Problem`; its response (status, body, headers) is made in one
place, where answers are encoded. An exception that is no `Problem` is a defect of the service.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

from pydantic_core import ErrorDetails

from edge_api.schema.sentences import Sentence, sentence

Code = Literal[
    "invalid",
    "unauthenticated",
    "forbidden",
    "insufficient_scope",
    "table_not_allowed",
    "not_found",
    "method_not_allowed",
    "not_acceptable",
    "body_timeout",
    "conflict",
    "in_progress",
    "stale",
    "too_large",
    "unsupported_media_type",
    "range_not_satisfiable",
    "misdirected",
    "idempotency_mismatch",
    "fetch_failed",
    "locked",
    "unnamed",
    "too_many_requests",
    "internal",
    "not_implemented",
    "unavailable",
]

CANCELED: Final = "57014"  # PostgreSQL's code for a statement that took too long
OUTCOME_UNKNOWN: Final = "08007"  # PostgreSQL's code for a commit whose outcome is unknown

_MESSAGES = {
    "missing": sentence("is required"),
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "bool_type": "must be true or false",
    "list_type": "must be an array",
    "tuple_type": "must be an array",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "extra_forbidden": "is not a known member",
    "json_invalid": "is not valid JSON",
    "too_short": "must have {min_length} {things} or more",
    "string_too_short": "must have {min_length} characters or more",
    "too_long": "must have {max_length} {things} or fewer",
    "string_too_long": "must have {max_length} characters or fewer",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
    "value_error": "{error}",
}
"""Messages by pydantic's type of error, to be filled with its context."""


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """The status, the default message and the error codes of one kind of problem."""

    status: int
    """HTTP status code (RFC 9110, section 15)."""
    message: str
    """The default message for the client."""
    sqlstate: str
    """PostgreSQL's or PostgREST's code for it, which clients of that dialect read."""
    oauth: str = "invalid_request"
    """The error code of RFC 6749, section 5.2, which OAuth clients read."""


PROBLEMS: Mapping[Code, ProblemKind] = {
    "invalid": ProblemKind(400, sentence("The request is not valid"), "PGRST100"),
    "unauthenticated": ProblemKind(
        401, sentence("Missing or invalid credential"), "PGRST301", "invalid_client"
    ),
    "forbidden": ProblemKind(403, sentence("Not allowed"), "42501"),
    "insufficient_scope": ProblemKind(403, sentence("The credential lacks the scope"), "42501"),
    "table_not_allowed": ProblemKind(403, sentence("Table not allowed"), "PGRST205"),
    "not_found": ProblemKind(404, sentence("Not found"), "PGRST125"),
    "method_not_allowed": ProblemKind(405, sentence("Method not allowed"), "PGRST117"),
    "not_acceptable": ProblemKind(406, sentence("No acceptable representation"), "PGRST116"),
    "body_timeout": ProblemKind(408, sentence("The body took longer than 10 seconds"), CANCELED),
    "conflict": ProblemKind(409, sentence("The row exists already"), "23505"),
    "in_progress": ProblemKind(
        409, sentence("The first request with this key is running"), "55P03"
    ),
    "stale": ProblemKind(412, sentence("It was changed since you read it"), "40001"),
    "too_large": ProblemKind(413, sentence("The body is too large"), "54000"),
    "unsupported_media_type": ProblemKind(415, sentence("Send application/json"), "PGRST102"),
    "range_not_satisfiable": ProblemKind(
        416, sentence("The range lies outside the file"), "PGRST103"
    ),
    "misdirected": ProblemKind(
        421, sentence("This service does not answer for this host"), "PGRST100"
    ),
    "idempotency_mismatch": ProblemKind(
        422, sentence("This Idempotency-Key was used with another body"), "PGRST102"
    ),
    "fetch_failed": ProblemKind(
        422, sentence("The document at the address could not be fetched"), "08006"
    ),
    "locked": ProblemKind(423, sentence("Something else has to be finished first"), "55006"),
    "unnamed": ProblemKind(428, sentence("Name the version that you read, in If-Match"), "22023"),
    "too_many_requests": ProblemKind(
        429, sentence("Too many requests"), "PGRST003", "temporarily_unavailable"
    ),
    "internal": ProblemKind(500, sentence("Internal error"), "XX000", "server_error"),
    "not_implemented": ProblemKind(501, sentence("Unknown method"), "PGRST117"),
    "unavailable": ProblemKind(
        503, sentence("The service cannot do this now"), "57P03", "temporarily_unavailable"
    ),
}
assert set(PROBLEMS) == set(get_args(Code))  # noqa: S101  type checkers need `Code` as well


class Problem(Exception):  # noqa: N818  a problem in the sense of RFC 9457, not a fault of the code
    """An error that the client gets, as one sentence.

    `message` says what is wrong and what to fix; `sqlstate`, `details` and `hint` are members of
    errors in PostgREST's dialect, `oauth` is the error code for OAuth clients; `findings` are
    defects of a text that was to be written; `headers` are sent with the response (`Retry-After`,
    `Allow`).
    """

    def __init__(  # noqa: PLR0913  the members of one answer
        self,
        code: Code,
        message: str = "",
        *,
        sqlstate: str = "",
        details: str | None = None,
        hint: str | None = None,
        oauth: str = "",
        findings: Sequence[Mapping[str, object]] = (),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        kind = PROBLEMS[code]
        self.code = code
        self.status = kind.status
        self.message = message or kind.message
        self.sqlstate = sqlstate or kind.sqlstate
        self.details = details
        self.hint = hint
        self.oauth = oauth or kind.oauth
        self.findings = findings
        self.headers = headers
        super().__init__(self.message)


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error is the problem `unavailable`, as of a store that does not work.

    The problem of a read that took too long does not count, since the store works.
    """
    return isinstance(error, Problem) and error.code == "unavailable" and error.sqlstate != CANCELED


def not_one_row(count: int) -> Problem:
    """Return the problem of a result of `count` rows where exactly one row was asked for."""
    return Problem(
        "not_acceptable",
        "One object was asked for, and the result is not exactly one row",
        details=f"The result contains {count} rows",
    )


def format_validation_error(error: ErrorDetails) -> str:
    """Return a pydantic error as half a sentence, to follow the value's name and a colon."""
    message = _MESSAGES.get(error["type"])
    cause = error.get("ctx", {}).get("error")
    reason = cause.args[0] if isinstance(cause, ValueError) else message
    if isinstance(reason, Sentence):  # unchanged, so that it can be translated
        return reason
    if message is None:
        return error["msg"][:1].lower() + error["msg"][1:]
    things = "characters" if isinstance(error["input"], str) else "items"
    text = message.format(things=things, **error.get("ctx", {}))
    return text.replace(f" 1 {things}", f" 1 {things[:-1]}")
