"""Sample requests of an operation in curl, Python and JavaScript, without other packages."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

import jinja2

from edge_api.operation.model import JSON, AnyOperation

Json = Mapping[str, Any]
Credential = Literal["none", "key", "token", "client"]


@dataclass(frozen=True, slots=True)
class Call:
    """A complete request."""

    method: str
    url: str
    credential: Credential
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None  # JSON, or the texts of a form; `None` if nothing is sent
    is_form: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    """Names of environment variables, by the placeholder in the body that each replaces."""

    @property
    def sends_json(self) -> bool:
        """Whether the request has a JSON body."""
        return self.body is not None and not self.is_form


def is_callable(operation: AnyOperation) -> bool:
    """Return whether a program can call an operation: no page, no signature, and a 2xx answer."""
    if operation.is_page or (operation.body and operation.body.verify_signature):
        return False
    return any(
        HTTPStatus.OK <= each.status < HTTPStatus.MULTIPLE_CHOICES for each in operation.responses
    )


def make_samples(
    operation: AnyOperation, parameters: Iterable[Json], site_url: str
) -> tuple[tuple[str, str, str], ...]:
    """Return for each language its name for readers, its name for highlighters, and the sample.

    The result is empty if the operation is not callable. `parameters` are those of its OpenAPI
    entry, with references resolved.
    """
    if not is_callable(operation):
        return ()
    call = _make_call(operation, parameters, site_url)
    return (
        ("curl", "bash", write_curl(call)),
        ("Python", "python", write_python(call)),
        ("JavaScript", "js", write_javascript(call)),
    )


def _make_call(operation: AnyOperation, parameters: Iterable[Json], site_url: str) -> Call:
    path = operation.path
    pairs: dict[str, str] = {}
    headers: dict[str, str] = {}
    for each in parameters:
        name, example = each["name"], each.get("example")
        if example is None:
            continue
        if each["in"] == "path":
            path = path.replace(f"{{{name}}}", quote(str(example), safe=""))
        elif each["in"] == "header":
            headers[name] = example
        elif isinstance(example, dict):  # filters of several columns: one is enough
            pairs |= dict(list(example.items())[:1])
        elif example != each["schema"].get("default"):
            pairs[name] = str(example)
    query = urlencode(pairs, safe=":*,().")
    body = next(iter(operation.body.examples.values()), None) if operation.body else None
    return Call(
        method=operation.method,
        url=f"{site_url}{path}{'?' if query else ''}{query}",
        credential=_credential(operation),
        headers=headers,
        body=body,
        is_form=operation.body is not None and operation.body.media_type != JSON,
        variables={
            value: name.upper()
            for name, value in (body.items() if isinstance(body, dict) else ())
            if isinstance(value, str) and value.endswith("...")  # a placeholder
        },
    )


def _credential(operation: AnyOperation) -> Credential:
    if operation.credential == "required":
        return "token" if operation.audience == "mcp" else "key"
    needs_client = operation.error_format == "oauth" and "unauthenticated" in operation.problems
    return "client" if needs_client else "none"


def write_curl(call: Call) -> str:
    """Return a command line for a POSIX shell."""
    parts = [f"curl {_quote_shell(call.url)}"]
    if call.method != ("GET" if call.body is None else "POST"):
        parts[0] = f"curl -X {call.method} {_quote_shell(call.url)}"
    parts += {
        "none": [],
        "key": ['-H "X-API-Key: $KEY"'],
        "token": ['-H "Authorization: Bearer $ACCESS_TOKEN"'],
        "client": ['-u "$CLIENT_ID:$CLIENT_SECRET"'],
    }[call.credential]
    parts += [f"-H {_quote_shell(f'{name}: {value}')}" for name, value in call.headers.items()]
    if call.is_form:
        for name, value in call.body.items():
            variable = call.variables.get(value)
            member = f'"{name}=${variable}"' if variable else _quote_shell(f"{name}={value}")
            parts.append(f"--data-urlencode {member}")
    elif call.sends_json:
        text = json.dumps(call.body, ensure_ascii=False, indent=2)
        parts += [f"-H 'Content-Type: {JSON}'", f"-d {_quote_shell(text, call.variables)}"]
    return " \\\n  ".join(parts)


def _quote_shell(text: str, variables: Mapping[str, str] | None = None) -> str:
    quoted = "'" + text.replace("'", "'\\''") + "'"
    for placeholder, variable in (variables or {}).items():
        quoted = quoted.replace(placeholder, f"'\"${variable}\"'")
    return quoted


def write_python(call: Call) -> str:
    """Return a program for Python's standard library."""
    body = _format_body(call, 4, 'os.environ["{}"]')
    # JSON strings are Python strings too, but the constants have other names in Python.
    names = {"true": "True", "false": "False", "null": "None"}
    body = re.sub(
        r'"(?:[^"\\]|\\.)*"|true|false|null', lambda found: names.get(found[0], found[0]), body
    )
    return TEMPLATES.get_template("python.jinja").render(call=call, body=body)


def write_javascript(call: Call) -> str:
    """Return a module for Node.js 20 or later."""
    body = _format_body(call, 2, "process.env.{}")
    return TEMPLATES.get_template("javascript.jinja").render(call=call, body=body)


def _format_body(call: Call, indent: int, variable: str) -> str:
    """Return the body as JSON; `variable` is the format of code that reads a variable."""
    text = json.dumps(call.body, ensure_ascii=False, indent=indent)
    text = text.replace("\n", "\n" + " " * indent)
    for placeholder, name in call.variables.items():
        text = text.replace(_quote_json(placeholder), variable.format(name))
    return text


def _quote_json(text: str) -> str:
    """Return the text as a JSON string."""
    return json.dumps(text, ensure_ascii=False)


TEMPLATES: Final = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    undefined=jinja2.StrictUndefined,
    autoescape=False,  # noqa: S701  renders Markdown and code from our own text
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters["quote"] = _quote_json
