"""`auth.md`: how a program without an account gets access, told to programs that read.

The order of its sections is that of auth.md, by which agents know such a file; what it says is
what the edge on this site does.
"""

from collections.abc import Iterable, Sequence

from edge_api.schema import paths
from edge_api.schema.credentials import DEFAULT_SCOPES, PREFIXES, SCOPES, SECRET_PATTERN
from site_build.renderers.markdown import escape_text
from site_build.site import Identity, Policy

API, MCP = (path.lstrip("/") for path in (paths.AUDIENCES["rest"], paths.AUDIENCES["mcp"]))
REQUESTS, CLAIM = (path.lstrip("/") for path in (paths.REQUEST_ACCESS, paths.CLAIM_CREDENTIAL))
OAUTH = paths.OAUTH.lstrip("/")
SERVER, RESOURCE = (path.lstrip("/") for path in (paths.METADATA, paths.RESOURCE_METADATA))
CONTACT = "contact/#access"

_ERRORS = (
    ("400", "the request is not valid; the sentence names the member"),
    ("401", "no credential, or one that is not valid (any more): see `WWW-Authenticate`"),
    ("403", "the credential lacks a scope, which the header names"),
    ("429", "too many requests: wait for `Retry-After`"),
    ("503", "too many requests for access wait, or the service rests: wait for `Retry-After`"),
)
_APPROVED = (
    "approved: `credential`, `credential_type`, `credential_expires`, `scopes`; `credentials` has "
    "both of two. For ten minutes the same token gives the same answer again"
)


def render_auth(identity: Identity, policy: Policy) -> str:
    """Return the file."""
    title = f"# auth.md: access to {escape_text(identity.name)}"
    sections = (
        _introduce(identity, policy),
        _discover(identity),
        _pick(identity),
        _register(identity),
        _claim(identity),
        _exchange(identity),
        _use(),
        _list_errors(),
        _revoke(identity),
    )
    return "\n\n".join((title, *sections)) + "\n"


def _introduce(identity: Identity, policy: Policy) -> str:
    leads = "" if policy.leads_need_credential else f", leads (`POST /{API}/leads`)"
    scopes = _table(("scope", "lets its holder"), [(f"`{each}`", SCOPES[each]) for each in SCOPES])
    return f"""\
This site has a REST API ({identity.absolute(API)}/) and an MCP endpoint
({identity.absolute(MCP)}). The REST API takes an API key, the MCP endpoint an access token; a
person decides who gets one. Each also takes tokens from the token endpoint that are meant for it.
Open to everybody, within rate limits: search (`GET {paths.SEARCH_DATA}`), analysis
(`POST /{API}/analyze`){leads}. For posts{" and leads" if not leads else ", the list of leads"} and
administrative tables a credential is needed:

{scopes}"""


def _discover(identity: Identity) -> str:
    return f"""\
## Discover

A request without a credential is answered 401, and its header `WWW-Authenticate: Bearer` names
the metadata of the resource in `resource_metadata`. From there on:

- {identity.absolute(RESOURCE)}: what is protected, its scopes, and who hands out tokens (RFC 9728);
  also below it for each resource, as `/{API}` and `/{MCP}`.
- {identity.absolute(SERVER)}: the authorization server (RFC 8414). Its member `agent_auth` has
  `register_uri` and `claim_uri`, which later versions call `identity_endpoint` and
  `claim_endpoint`.
- {identity.absolute(API)}/openapi.json: every operation, with every answer."""


def _pick(identity: Identity) -> str:
    methods = (
        (
            "an agent without an account",
            "register as `anonymous`, below",
            "an API key, or an access token for MCP",
        ),
        (
            "a program whose user has an API key here",
            "OAuth 2.1: authorization code with PKCE (S256)",
            "a token for an hour, and a refresh token",
        ),
        (
            "a program that acts for itself",
            f"write to {identity.absolute(CONTACT)} to be registered as a client",
            "tokens by `client_credentials`",
        ),
    )
    return f"""\
## Pick a method

{_table(("you are", "do this", "you get"), methods)}

Of the identity types of auth.md only `anonymous` is supported. `identity_assertion` (with an
id-jag) and `service_auth` are not: there are no accounts here that they could prove."""


def _register(identity: Identity) -> str:
    return f"""\
## Register

```http
POST /{REQUESTS}
Content-Type: application/json

{{"type": "anonymous", "requested_credential_type": "api_key",
 "name": "Reading list", "email": "ann.lee@example.org",
 "purpose": "Show the newest posts on our intranet.", "scopes": ["posts:read"]}}
```

`requested_credential_type` is `api_key` (for the REST API), `access_token` (for MCP), or `both`:
one approval then gives a credential for each. The other members may be left out, but the person
who decides reads them. Without `scopes` you ask for
`{" ".join(DEFAULT_SCOPES)}`, and with an access token for `mcp` too. Scopes that begin with
`admin:` are only given on purpose.

The answer is 201 with `registration_id`, `status` (`pending`), `scopes`, `claim_uri`, and the
`claim_token`, which is shown this once. People do the same at {identity.absolute(CONTACT)}."""


def _claim(identity: Identity) -> str:
    tell_us = f"tell us at {identity.absolute(CONTACT)} if not to you"
    answers = (
        ("202", "nobody has decided yet"),
        ("200", _APPROVED),
        ("403", "denied"),
        ("404", "the token is unknown, or its 14 days are over"),
        ("409", f"it was handed out more than ten minutes ago, or has ended; {tell_us}"),
    )
    return f"""\
## Claim

```http
POST /{CLAIM}
Content-Type: application/json

{{"claim_token": "{PREFIXES["claim_token"]}..."}}
```

Ask from time to time; `Retry-After` says when again.

{_table(("status", "means"), answers)}"""


def _exchange(identity: Identity) -> str:
    return f"""\
## Exchange

What was claimed is the credential itself; nothing has to be exchanged for it. Whoever comes by
OAuth exchanges a code or a refresh token at {identity.absolute(f"{OAUTH}/token")}; the page for
the person is {identity.absolute(f"{OAUTH}/authorize")}. Clients name themselves by the URL of a
client ID metadata document, or register at {identity.absolute(f"{OAUTH}/register")} (RFC 7591)."""


def _use() -> str:
    return f"""\
## Use the access_token

An access token that was claimed (`{PREFIXES["access_token"]}...`) is for the MCP endpoint alone:

```http
POST /{MCP}
Authorization: Bearer <ACCESS_TOKEN>
Content-Type: application/json

{{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}
```

An API key (`{PREFIXES["api_key"]}...`) is for the REST API alone:

```http
GET /{API}/posts
X-API-Key: <API_KEY>
```

`Authorization: Bearer <API_KEY>` does the same. A token from the token endpoint is for what its
`resource` says. Never put a credential into a URL.

Secrets of this site are found by this regular expression; the last six characters are a CRC-32:

```text
{SECRET_PATTERN}
```"""


def _list_errors() -> str:
    return f"""\
## Errors

An error is `{{"error": "<sentence>"}}`; the OAuth endpoints say `error` and `error_description`
(RFC 6749). The sentence says what to mend.

{_table(("status", "means"), _ERRORS)}"""


def _revoke(identity: Identity) -> str:
    return f"""\
## Revocation

Tokens of the token endpoint are taken back at {identity.absolute(f"{OAUTH}/revoke")} (RFC 7009).
For an API key, or an access token that was claimed, write to us at {identity.absolute(CONTACT)}.
What is revoked ends with the next request, and so does all that was granted with it."""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
