"""The example request of an operation in each language, without anything to install."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

from edge_api.operation.model import AnyOperation
from edge_api.operation.reference.values import Code, Example
from edge_api.operation.service import JSON

Json = Mapping[str, Any]
Credential = Literal["none", "key", "token", "client"]

_FIRST_SUCCESS, _FIRST_REDIRECT = 200, 300


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
    """Placeholders in the body, and the names of environment variables for them."""


def is_callable(operation: AnyOperation) -> bool:
    """Return whether a program can call it: it is no page, and needs no signature."""
    signed = operation.body is not None and operation.body.verify_signature is not None
    succeeds = any(_FIRST_SUCCESS <= each.status < _FIRST_REDIRECT for each in operation.responses)
    return succeeds and not operation.is_page and not signed


def make_call(operation: AnyOperation, entry: Json, site_url: str) -> Call:
    """Return the example of `operation`; `entry` is its OpenAPI entry without references."""
    parameters = [each for each in entry["parameters"] if "example" in each]
    path = operation.path
    for each in parameters:
        if each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", quote(str(each["example"]), safe=""))
    pairs = [pair for each in parameters if each["in"] == "query" for pair in _pairs(each)]
    query = urlencode(pairs, safe=":*,().")
    body = next(iter(operation.body.examples.values()), None) if operation.body else None
    return Call(
        method=operation.method,
        url=f"{site_url}{path}{'?' if query else ''}{query}",
        credential=_credential(operation),
        headers={each["name"]: each["example"] for each in parameters if each["in"] == "header"},
        body=body,
        is_form=operation.body is not None and operation.body.media_type != JSON,
        variables={
            value: name.upper()
            for name, value in (body.items() if isinstance(body, dict) else ())
            if isinstance(value, str) and value.endswith("...")  # the reader has to replace it
        },
    )


def _pairs(parameter: Json) -> Iterator[tuple[str, str]]:
    """Yield the pairs of the query; of parameters named by columns the first is enough."""
    example = parameter["example"]
    if isinstance(example, dict):
        yield from list(example.items())[:1]
    elif example != parameter["schema"].get("default"):
        yield parameter["name"], str(example)


def _credential(operation: AnyOperation) -> Credential:
    if operation.credential == "required":
        return "token" if operation.audience == "mcp" else "key"
    is_clients = operation.error_format == "oauth" and "unauthenticated" in operation.problems
    return "client" if is_clients else "none"


def make_examples(call: Call) -> tuple[Example, ...]:
    """Return the request in each language."""
    return (
        Example("curl", Code("bash", write_curl(call))),
        Example("Python", Code("python", write_python(call))),
        Example("JavaScript", Code("js", write_javascript(call))),
    )


def write_curl(call: Call) -> str:
    """Return a command line for a shell of POSIX."""
    parts = [f"curl {_quote_shell(call.url)}"]
    if call.method != ("GET" if call.body is None else "POST"):
        parts[0] = f"curl -X {call.method} {_quote_shell(call.url)}"
    parts += _CURL_CREDENTIALS[call.credential]
    parts += [f"-H {_quote_shell(f'{name}: {value}')}" for name, value in call.headers.items()]
    if call.is_form:
        parts += [_curl_member(call, name, value) for name, value in call.body.items()]
    elif call.body is not None:
        text = json.dumps(call.body, ensure_ascii=False, indent=2)
        parts += [f"-H 'Content-Type: {JSON}'", f"-d {_quote_shell(text, call.variables)}"]
    return " \\\n  ".join(parts)


_CURL_CREDENTIALS: Final[Mapping[Credential, list[str]]] = {
    "none": [],
    "key": ['-H "X-API-Key: $KEY"'],
    "token": ['-H "Authorization: Bearer $ACCESS_TOKEN"'],
    "client": ['-u "$CLIENT_ID:$CLIENT_SECRET"'],
}


def _curl_member(call: Call, name: str, value: str) -> str:
    variable = call.variables.get(value)
    text = f'"{name}=${variable}"' if variable else _quote_shell(f"{name}={value}")
    return f"--data-urlencode {text}"


def _quote_shell(text: str, variables: Mapping[str, str] | None = None) -> str:
    quoted = "'" + text.replace("'", "'\\''") + "'"
    for placeholder, variable in (variables or {}).items():
        quoted = quoted.replace(placeholder, f"'\"${variable}\"'")
    return quoted


def write_python(call: Call) -> str:
    """Return a program for Python's standard library."""
    arguments = [_quote(call.url)]
    if call.body is not None:
        coder = "urlencode" if call.is_form else "json.dumps"
        literal = _python_literal(call.body, call.variables, "    ")
        arguments.append(f"data={coder}({literal}).encode()")
    if call.method != ("GET" if call.body is None else "POST"):
        arguments.append(f"method={_quote(call.method)}")
    if headers := _list_headers(call, _PYTHON_CREDENTIALS):
        arguments.append("headers={\n        " + "\n        ".join(headers) + "\n    }")
    lines = ",\n    ".join(arguments)
    return (
        f"{_python_imports(call)}\n\n"
        f"{_PYTHON_CLIENT if call.credential == 'client' else ''}"
        f"request = Request(\n    {lines},\n)\n"
        "with urlopen(request, timeout=10) as answer:\n"
        "    print(answer.status, json.load(answer))"
    )


_PYTHON_CLIENT: Final = """\
client = f"{os.environ['CLIENT_ID']}:{os.environ['CLIENT_SECRET']}"
"""


def _python_imports(call: Call) -> str:
    reads_environment = call.credential != "none" or call.variables
    lines = ["import json", *(["import os"] if reads_environment else [])]
    lines += ["from base64 import b64encode"] if call.credential == "client" else []
    lines += ["from urllib.parse import urlencode"] if call.is_form else []
    return "\n".join([*lines, "from urllib.request import Request, urlopen"])


_PYTHON_CREDENTIALS: Final[Mapping[Credential, str]] = {
    "key": '"X-API-Key": os.environ["KEY"],',
    "token": '"Authorization": f"Bearer {os.environ[\'ACCESS_TOKEN\']}",',
    "client": '"Authorization": f"Basic {b64encode(client.encode()).decode()}",',
}


def _list_headers(call: Call, credentials: Mapping[Credential, str]) -> list[str]:
    lines = [credentials[call.credential]] if call.credential in credentials else []
    if call.body is not None and not call.is_form:
        lines.append(f'"Content-Type": "{JSON}",')
    return lines + [f"{_quote(name)}: {_quote(value)}," for name, value in call.headers.items()]


def _python_literal(value: Any, variables: Mapping[str, str], margin: str) -> str:
    inner = f"{margin}    "
    match value:
        case dict():
            members = (
                f"{_quote(name)}: {_python_literal(each, variables, inner)}"
                for name, each in value.items()
            )
            return _wrap("{}", members, margin, inner)
        case list() | tuple():
            items = (_python_literal(each, variables, inner) for each in value)
            return _wrap("[]", items, margin, inner)
        case str():
            name = variables.get(value)
            return f'os.environ["{name}"]' if name else _quote(value)
    return str(value)


def _wrap(brackets: str, lines: Iterator[str], margin: str, inner: str) -> str:
    content = "".join(f"\n{inner}{line}," for line in lines)
    return f"{brackets[0]}{content}\n{margin}{brackets[1]}" if content else brackets


def write_javascript(call: Call) -> str:
    """Return a module for Node.js 20 or later."""
    options = list(_javascript_options(call))
    joined = "".join(f"\n  {option}," for option in options)
    given = f", {{{joined}\n}}" if options else ""
    return (
        f"const answer = await fetch({_quote(call.url)}{given});\n"
        "console.log(answer.status, await answer.json());"
    )


def _javascript_options(call: Call) -> Iterator[str]:
    if call.method != "GET":
        yield f"method: {_quote(call.method)}"
    if headers := _list_headers(call, _JAVASCRIPT_CREDENTIALS):
        yield "headers: {\n    " + "\n    ".join(headers) + "\n  }"
    if call.body is not None:
        text = json.dumps(call.body, ensure_ascii=False, indent=2).replace("\n", "\n  ")
        for placeholder, variable in call.variables.items():
            text = text.replace(_quote(placeholder), f"process.env.{variable}")
        yield f"body: {'new URLSearchParams' if call.is_form else 'JSON.stringify'}({text})"


_JAVASCRIPT_CREDENTIALS: Final[Mapping[Credential, str]] = {
    "key": '"X-API-Key": process.env.KEY,',
    "token": "Authorization: `Bearer ${process.env.ACCESS_TOKEN}`,",
    "client": "Authorization: "
    "`Basic ${btoa(`${process.env.CLIENT_ID}:${process.env.CLIENT_SECRET}`)}`,",
}


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
