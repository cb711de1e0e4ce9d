"""The OpenAPI document against its norm, the routes, and live answers."""

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from edge_api.db.problems import PROBLEMS
from edge_api.db.tables import ADMINISTRATIVE
from edge_api.operation.model import JSON
from edge_api.operation.openapi import problem_codes
from edge_api.operations import DOCUMENTED, OPERATIONS

pytestmark = pytest.mark.one_engine

DOCUMENT = "/api/public/v1/openapi.json"


@pytest.fixture
async def document(make_edge: Any) -> dict[str, Any]:
    """Return the document as it is served where nothing is switched off."""
    newsletter = {
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "post@journal.example",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Edge Street, Binding",
        "OWNER_EMAIL": "owner@journal.example",
        "SITE_URL": "https://journal.test",
        "SMTP_URL": "smtp://127.0.0.1:9",
    }
    async with make_edge(WRITING="on", **newsletter) as edge, edge.ask("GET", DOCUMENT) as answer:
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

    assert documented == {(item.method, item.path): item.name for item in DOCUMENTED}
    assert {"/", "/llms.txt", "/sitemap.xml"} <= {path for _, path in documented}


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
    for item in DOCUMENTED:
        answers = document["paths"][item.path][item.method.lower()]["responses"]
        wanted = {str(PROBLEMS[code].status) for code in problem_codes(item)}
        wanted |= {str(success.status) for success in item.responses}
        assert set(answers) == wanted, item.name


async def test_the_document_stays_small(edge: Any) -> None:
    """The document is under 200 kB: agents read it whole, and the next member needs room."""
    async with edge.ask("GET", DOCUMENT) as answer:
        assert len(await answer.read()) < 200_000


async def test_a_read_has_three_forms_and_a_write_one(document: dict[str, Any]) -> None:
    """Generated clients get one type of what a write answers: an array of whole rows."""
    tables = {
        path.rpartition("/")[2]: each
        for path, each in document["paths"].items()
        if "/admin/" in path and "get" in each
    }
    assert set(tables) == set(ADMINISTRATIVE)
    for name, table in tables.items():
        read = table["get"]["responses"]["200"]
        assert set(read["content"]) == {JSON, "application/vnd.pgrst.object+json", "text/csv"}
        assert set(read["headers"]) == {"Content-Range", "Link", "Preference-Applied"}
        row = {"$ref": f"#/components/schemas/{name.title().replace('_', '')}Row"}
        for method, status in (("post", "201"), ("patch", "200"), ("delete", "200")):
            written = table[method]["responses"][status]["content"]
            assert written == {JSON: {"schema": {"type": "array", "items": row}}}


async def test_errors_and_resources_are_components(document: dict[str, Any]) -> None:
    """Every error answer, and each resource of the specification, is referred to by its name."""
    for item in DOCUMENTED:
        responses = {str(success.status) for success in item.responses}
        answers = document["paths"][item.path][item.method.lower()]["responses"]
        errors = [each for status, each in answers.items() if status not in responses]
        assert [each for each in errors if set(each) != {"$ref"}] == [], item.name

    schemas = "#/components/schemas"
    posts, leads = (
        document["paths"][f"/api/public/v1/{name}"] for name in ("posts/{slug}", "leads")
    )
    assert content_of(posts["get"]["responses"]["200"]) == {"$ref": f"{schemas}/Post"}
    assert content_of(leads["post"]["requestBody"]) == {"$ref": f"{schemas}/LeadInput"}
    created = document["components"]["schemas"]["LeadCreated"]
    assert created["properties"]["lead"]["$ref"] == f"{schemas}/Lead"


def content_of(part: dict[str, Any]) -> Any:
    """Return the schema of the JSON of a body or an answer."""
    return part["content"]["application/json"]["schema"]


async def test_oauth_tokens_are_a_way_in(document: dict[str, Any]) -> None:
    """Each operation that needs a credential takes tokens of OAuth, and the flows are named."""
    flows = document["components"]["securitySchemes"]["OAuth"]["flows"]
    assert set(flows) == {"authorizationCode", "clientCredentials"}
    for item in OPERATIONS:
        ways = document["paths"][item.path][item.method.lower()]["security"]
        scopes = [item.scope] if item.scope else []
        wanted = [] if item.credential == "none" else [scopes]
        assert [way["OAuth"] for way in ways if "OAuth" in way] == wanted, item.name


async def test_bodies_have_their_defaults_in_words(document: dict[str, Any]) -> None:
    """A generated client demands a member with a default, or sends it where nobody named it."""
    bodies = [
        content["schema"]
        for item in document["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict)
        for content in operation.get("requestBody", {}).get("content", {}).values()
    ]
    schemas = document["components"]["schemas"]
    assert len(bodies) > 20
    assert defaults_in(bodies, schemas) == []
    assert schemas["AnalyzeInput"]["properties"]["keywords"]["description"].endswith(
        " Default: `10`."
    )
    assert schemas["LeadsNewRow"]["properties"]["status"]["description"] == "Default: `new`."
    assert "Default" not in schemas["LeadInput"]["properties"]["consent_text"]["description"]


def defaults_in(schema: Any, schemas: dict[str, Any]) -> list[Any]:
    """Return the defaults in a schema and in what it refers to; none refers to itself but JSON."""
    if isinstance(schema, list):
        return [found for each in schema for found in defaults_in(each, schemas)]
    if not isinstance(schema, dict):
        return []
    name = schema.get("$ref", "").rpartition("/")[2]
    inner = [schemas[name]] if name not in ("", "JsonValue") else []
    own = [schema["default"]] if "default" in schema else []
    return own + [
        found for each in (*schema.values(), *inner) for found in defaults_in(each, schemas)
    ]


async def test_optional_members_of_answers_have_no_default(document: dict[str, Any]) -> None:
    """`null` as the default of `next` would say that it is always there."""
    schemas = document["components"]["schemas"]
    assert "default" not in schemas["PostList"]["properties"]["next"]
    assert "default" not in schemas["TokenAnswer"]["properties"]["refresh_token"]


def validator_at(document: dict[str, Any], *steps: str) -> Draft202012Validator:
    """Return a validator of the schema that the steps lead to, within the whole document."""
    resource = Resource.from_contents(document, default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("urn:openapi", resource)
    pointer = "/".join(step.replace("~", "~0").replace("/", "~1") for step in steps)
    return Draft202012Validator({"$ref": f"urn:openapi#/{pointer}"}, registry=registry)


@pytest.mark.parametrize(
    "path",
    [item.path for item in DOCUMENTED if item.method == "GET" and "{" not in item.path],
)
async def test_live_answers_fit_their_schema(
    edge: Any, document: dict[str, Any], path: str
) -> None:
    """The answers of GET are as the document declares."""
    key = await edge.key()
    async with edge.ask("GET", path, key) as answer:
        if answer.status == 303:  # on to a page
            return
        media_type = answer.headers["Content-Type"].split(";")[0]
        is_json = media_type.endswith("json")
        body = await (answer.json(content_type=None) if is_json else answer.text())
        found = document["paths"][path]["get"]["responses"][str(answer.status)]
        where: tuple[str, ...] = ("paths", path, "get", "responses", str(answer.status))
        if "$ref" in found:
            where = ("components", "responses", found["$ref"].rpartition("/")[2])

    schema = validator_at(document, *where, "content", media_type, "schema")
    assert list(schema.iter_errors(body)) == []


async def test_required_members_of_forms_are_not_empty(document: dict[str, Any]) -> None:
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
