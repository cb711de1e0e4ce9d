"""Operations as entries of the reference, made from their declarations and the OpenAPI document."""

import json
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from limits import RateLimitItem, parse_many

from edge_api.api.operation import Operation
from edge_api.api.reference.calls import is_callable, make_call
from edge_api.api.reference.fields import RECEIVED, SENT, Marks, Schemas
from edge_api.api.reference.languages import make_examples
from edge_api.api.reference.prose import Code, Prose
from edge_api.api.reference.values import Answer, Body, Entry, Field
from edge_api.domain.limits import NO_LIMIT

Json = Mapping[str, Any]
_FIRST_FAILURE: Final = 400


class Entries:
    """Makes entries; `document` is the OpenAPI document of the very same operations."""

    def __init__(self, document: Json, site_url: str, limits: Mapping[str, str]) -> None:
        """Take the rate limits by their names too, as the settings spell them."""
        self._document = document
        self._tags: Sequence[Json] = document["tags"]
        self._schemas = Schemas(document["components"]["schemas"])
        self._site_url = site_url
        self._limits = limits

    def about(self, tag: str) -> str:
        """Return what the document says of all operations with a tag."""
        return next((each.get("description", "") for each in self._tags if each["name"] == tag), "")

    def make(self, operation: Operation) -> Entry:
        """Return the entry of one operation."""
        entry = self._resolve(self._document["paths"][operation.path][operation.method.lower()])
        answers = [self._answer(*each) for each in entry["responses"].items()]
        successes = {str(success.status) for success in operation.successes}
        callable_ = is_callable(operation)
        return Entry(
            anchor=operation.name,
            method=operation.method,
            path=operation.path,
            summary=operation.summary,
            about=Prose(operation.description),
            access=Prose(" ".join(self._access(operation))),
            parameters=tuple(self._parameters(entry)),
            body=self._request_body(entry),
            answers=tuple(each for each in answers if each.status in successes),
            problems=tuple(each for each in answers if each.status not in successes),
            examples=make_examples(make_call(operation, entry, self._site_url))
            if callable_
            else (),
            remark=Prose("" if callable_ else _remark(operation)),
        )

    def _resolve(self, entry: Json) -> Json:
        """Return an entry with its parameters and answers in place of references to them."""
        responses = {name: self._referred(each) for name, each in entry["responses"].items()}
        parameters = [self._referred(each) for each in entry.get("parameters", ())]
        return {**entry, "responses": responses, "parameters": parameters}

    def _referred(self, value: Json) -> Json:
        if "$ref" not in value:
            return value
        _, _, kind, name = value["$ref"].split("/")
        found: Json = self._document["components"][kind][name]
        return found

    def _access(self, operation: Operation) -> Iterator[str]:
        """Yield sentences on who may call it, and how often."""
        yield _CREDENTIALS[operation.credential, operation.door]
        if operation.scope:
            needed = "Scope" if operation.credential == "required" else "Its scope"
            yield f"{needed}: `{operation.scope}`."
        for name in operation.limits:
            if (rate := self._limits[name]) != NO_LIMIT:
                yield f"Limit `{name}`: {spell_rate(rate)}."

    def _parameters(self, entry: Json) -> Iterator[Field]:
        for each in entry["parameters"]:
            schema = {**each["schema"], "description": each.get("description", "")}
            mark = SENT.there if each.get("required", False) else SENT.absent
            yield self._schemas.field(each["name"], schema, mark, each["in"])

    def _request_body(self, entry: Json) -> Body | None:
        content = entry.get("requestBody", {}).get("content", {})
        if not content:
            return None
        body = next(iter(content.values()))
        return self._body(tuple(content), body["schema"], None, SENT)

    def _answer(self, status: str, response: Json) -> Answer:
        content = response.get("content", {})
        headers = response.get("headers", {})
        return Answer(
            status=status,
            phrase=HTTPStatus(int(status)).phrase,
            sentence=Prose(response["description"]),
            headers={name: Prose(each["description"]) for name, each in headers.items()},
            body=self._answer_body(content) if int(status) < _FIRST_FAILURE else None,
        )

    def _answer_body(self, content: Json) -> Body | None:
        if not content:
            return None
        first = next(iter(content.values()))
        example = first.get("example", self._schemas.example(first["schema"]))
        return self._body(tuple(content), first["schema"], example, RECEIVED)

    def _body(self, media_types: tuple[str, ...], schema: Json, example: Any, marks: Marks) -> Body:
        return Body(
            media_types=media_types,
            fields=tuple(self._schemas.fields(schema, marks)),
            is_deeper=self._schemas.is_deeper(schema),
            example=None if example is None else Code("json", _write_json(example)),
        )


_CREDENTIALS: Final = {
    ("none", "rest"): "No credential is needed.",
    ("optional", "rest"): "No credential is needed; one that is sent must be valid.",
    ("required", "rest"): "Needs an API key, or an access token for the REST API.",
    ("required", "mcp"): "Needs an access token for the MCP endpoint.",
}


def spell_rate(rate: str) -> str:
    """Return a rate of the settings as a reader reads it: `5 in 10 minutes, 20 a day`."""
    if rate == NO_LIMIT:
        return "no limit"
    return ", ".join(f"{item.amount} {_spell_window(item)}" for item in parse_many(rate))


def _spell_window(item: RateLimitItem) -> str:
    unit = item.GRANULARITY.name
    if item.multiples > 1:
        return f"in {item.multiples} {unit}s"
    return f"{'an' if unit == 'hour' else 'a'} {unit}"


def _write_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _remark(operation: Operation) -> str:
    """Return why a reader's own program does not call it."""
    if operation.body is not None and operation.body.vouch is not None:
        return "The mail service calls this, and signs what it sends."
    return "For a person at a browser; programs have no use for it."
