"""The one request that stands as the example of an operation, before it is put into a language.

Everything in it is the declaration's own: the example values of parameters and body. What only the
reader has, such as a key, is a variable of the environment.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

from edge_api.api.operation import Operation
from edge_api.api.reply import JSON

Json = Mapping[str, Any]
Credential = Literal["none", "key", "token", "client"]

_PLACEHOLDER: Final = "..."
"""How an example value ends that is nobody's: the reader's own has to stand in its place."""
_UNESCAPED: Final = ":*,()."
_LEAST_SUCCESS, _LEAST_REDIRECT = 200, 300


@dataclass(frozen=True, slots=True)
class Call:
    """A request that can be sent as it stands."""

    method: str
    url: str
    credential: Credential
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    """What JSON can say; of a form, a mapping of texts. `None` where nothing is sent."""
    is_form: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    """Texts in the body that stand for variables of the environment, and the names of these."""


def is_callable(operation: Operation) -> bool:
    """Tell whether a program of the reader's can call it: no page, and nothing to be signed."""
    signed = operation.body is not None and operation.body.vouch is not None
    succeeds = any(_LEAST_SUCCESS <= each.status < _LEAST_REDIRECT for each in operation.successes)
    return succeeds and not operation.is_page and not signed


def make_call(operation: Operation, entry: Json, site_url: str) -> Call:
    """Return the example of `operation`; `entry` is its OpenAPI entry without references."""
    parameters = [each for each in entry["parameters"] if "example" in each]
    path = operation.path
    for each in parameters:
        if each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", quote(str(each["example"]), safe=""))
    pairs = [pair for each in parameters if each["in"] == "query" for pair in _pairs(each)]
    query = f"?{urlencode(pairs, safe=_UNESCAPED)}" if pairs else ""
    body = next(iter(operation.body.examples.values()), None) if operation.body else None
    return Call(
        method=operation.method,
        url=f"{site_url}{path}{query}",
        credential=_credential(operation),
        headers={each["name"]: each["example"] for each in parameters if each["in"] == "header"},
        body=body,
        is_form=operation.body is not None and operation.body.media_type != JSON,
        variables=dict(_variables(body)),
    )


def _pairs(parameter: Json) -> Iterator[tuple[str, str]]:
    """Yield what stands in the query; of parameters named by columns the first is enough."""
    example = parameter["example"]
    if isinstance(example, dict):
        yield from list(example.items())[:1]
    elif example != parameter["schema"].get("default"):
        yield parameter["name"], str(example)


def _credential(operation: Operation) -> Credential:
    if operation.credential == "required":
        return "token" if operation.door == "mcp" else "key"
    is_clients = operation.dialect == "oauth" and "unauthenticated" in operation.problems
    return "client" if is_clients else "none"


def _variables(body: Any) -> Iterator[tuple[str, str]]:
    for name, value in body.items() if isinstance(body, dict) else ():
        if isinstance(value, str) and value.endswith(_PLACEHOLDER):
            yield value, name.upper()
