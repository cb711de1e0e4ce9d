"""The OpenAPI document against its norm, the routes, and live answers."""

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from edge_api.api.openapi import problem_codes
from edge_api.api.operations import OPERATIONS
from edge_api.schema.problems import PROBLEMS

DOCUMENT = "/api/public/v1/openapi.json"


@pytest.fixture
async def document(edge: Any) -> dict[str, Any]:
    """Return the document as it is served."""
    async with edge.ask("GET", DOCUMENT) as answer:
        assert answer.status == 200
        return dict(await answer.json())


async def test_document_is_valid(document: dict[str, Any]) -> None:
    """The document keeps to OpenAPI 3.1 and carries the published title and version."""
    OpenAPIV31SpecValidator(document).validate()

    assert document["openapi"].startswith("3.1.")
    assert (document["info"]["title"], document["info"]["version"]) == ("Public API", "1.0.0")


async def test_each_operation_is_documented_and_nothing_else(document: dict[str, Any]) -> None:
    """The document names exactly the declared methods and paths, each with an operationId."""
    methods = ("get", "post", "patch", "delete")
    documented = {
        (method.upper(), path): entry[method]["operationId"]
        for path, entry in document["paths"].items()
        for method in methods
        if method in entry
    }

    assert documented == {(item.method, item.path): item.name for item in OPERATIONS}


async def test_each_documented_path_is_routed(edge: Any, document: dict[str, Any]) -> None:
    """OPTIONS on each documented path allows exactly the documented methods."""
    for path, entry in document["paths"].items():
        if "parameters" in entry and "get" not in entry:
            continue
        concrete = re.sub(r"\{\w+\}", "first-edge", path)
        async with edge.ask("OPTIONS", concrete) as answer:
            allowed = set(answer.headers["Allow"].split(", ")) - {"OPTIONS", "HEAD"}
        assert allowed == {method.upper() for method in entry} & {"GET", "POST", "PATCH", "DELETE"}


async def test_each_problem_has_a_documented_status(document: dict[str, Any]) -> None:
    """Each problem that an operation declares appears among its documented answers."""
    for item in OPERATIONS:
        answers = document["paths"][item.path][item.method.lower()]["responses"]
        wanted = {str(PROBLEMS[code].status) for code in problem_codes(item)}
        wanted |= {str(success.status) for success in item.successes}
        assert set(answers) == wanted, item.name


def validator_at(document: dict[str, Any], *steps: str) -> Draft202012Validator:
    """Return a validator of the schema that the steps lead to, within the whole document."""
    resource = Resource.from_contents(document, default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("urn:openapi", resource)
    pointer = "/".join(step.replace("~", "~0").replace("/", "~1") for step in steps)
    return Draft202012Validator({"$ref": f"urn:openapi#/{pointer}"}, registry=registry)


@pytest.mark.parametrize(
    "path",
    [item.path for item in OPERATIONS if item.method == "GET" and "{" not in item.path],
)
async def test_live_answers_fit_their_schema(
    edge: Any, document: dict[str, Any], path: str
) -> None:
    """What a GET answers is what the document says that it answers."""
    key = await edge.key()
    async with edge.ask("GET", path, key) as answer:
        if answer.status == 303:  # on to a page
            return
        media_type = answer.headers["Content-Type"].split(";")[0]
        is_json = media_type.endswith("json")
        body = await (answer.json(content_type=None) if is_json else answer.text())
        where = ("paths", path, "get", "responses", str(answer.status), "content", media_type)

    assert list(validator_at(document, *where, "schema").iter_errors(body)) == []


async def test_what_a_form_must_have_has_a_value(document: dict[str, Any]) -> None:
    """A parameter of OAuth that is sent without a value counts as left out (RFC 6749, 3.1)."""
    oauth = {path: item for path, item in document["paths"].items() if "/oauth/" in path}
    members = {
        (path, name): form["properties"][name]
        for path, item in oauth.items()
        for form in forms_of(item)
        for name in form["required"]
    }

    assert ("/api/public/oauth/revoke", "token") in members
    for member in members.values():
        assert not Draft202012Validator(member).is_valid("")


def forms_of(item: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of the forms that a path takes."""
    bodies = [each["requestBody"] for each in item.values() if "requestBody" in each]
    kinds = [body["content"].get("application/x-www-form-urlencoded") for body in bodies]
    return [kind["schema"] for kind in kinds if kind]
