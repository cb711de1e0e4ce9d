"""Redirect URIs: those that may be registered, and which one is used."""

import pytest

from edge_api.oauth.request import (
    csp_source,
    display_host,
    is_local_redirect,
    matches_uri,
    redirect_uri_error,
)

SCHEMES = ("cursor",)


@pytest.mark.parametrize(
    "uri",
    [
        "https://client.example/callback",
        "https://client.example/callback?x=1",
        "https://client.example:8443/",
        "http://127.0.0.1/callback",
        "http://127.0.0.1:8080/callback",
        "http://[::1]/callback",
        "http://localhost/callback",
        "cursor://anysphere.cursor-mcp/oauth/callback",
    ],
)
def test_redirect_uris_that_may_be_registered(uri: str) -> None:
    """https, this machine, and the schemes of the operator's list."""
    assert redirect_uri_error(uri, SCHEMES) is None


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/callback",
        "client.example/callback",
        "http://client.example/callback",
        "http://127.0.0.1.evil.example/",
        "http://127.0.0.2/",
        "http://user@127.0.0.1/",
        "https://",
        "https:///x",
        "https://client.example/#",
        "https://client.example/#x",
        "https://user:pass@client.example/",
        "https://client.example/a b",
        'https://client.example/"',
        "https://client.example\\@evil.example/",
        "https://client.example/\n",
        "https://client.example:99999/",
        "https://[::1/",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "vscode://x",
        "https://client.example/" + "x" * 2048,
    ],
)
def test_redirect_uris_that_may_not_be_registered(uri: str) -> None:
    """Each with a reason; the dangerous ones whatever the list says."""
    assert redirect_uri_error(uri, SCHEMES)
    assert redirect_uri_error("javascript:alert(1)", ("javascript",))


@pytest.mark.parametrize(
    ("registered", "named", "fits"),
    [
        ("https://a.example/cb", "https://a.example/cb", True),
        ("https://a.example/cb", "https://a.example/cb/", False),
        ("https://a.example/cb", "https://a.example/CB", False),
        ("https://a.example/cb", "https://a.example:444/cb", False),
        ("https://a.example/cb", "https://a.example/cb?x", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:49152/cb", True),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb", True),
        ("http://localhost/cb", "http://localhost:3000/cb", True),
        ("http://[::1]/cb", "http://[::1]:3000/cb", True),
        ("http://127.0.0.1/cb", "http://localhost:3000/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:49152/other", False),
        ("http://127.0.0.1/cb", "https://127.0.0.1:49152/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:49152/cb#x", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:49152/cb?x=1", False),
        ("http://127.0.0.1/cb?x=1", "http://127.0.0.1:49152/cb", False),
        ("http://127.0.0.1/cb?x=1", "http://127.0.0.1:49152/cb?x=2", False),
        ("http://127.0.0.1/cb?x=1", "http://127.0.0.1:49152/cb?x=1", True),
        ("http://127.0.0.1/cb", "http://x@127.0.0.1:49152/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:port/cb", False),
        ("http://[::1]/cb", "http://evil.example[::1]:80/cb", False),
        ("http://[::1]/cb", "http://[::1]evil.example:80/cb", False),
        ("cursor://x/cb", "cursor://x:1/cb", False),
    ],
)
def test_a_redirect_is_the_registered_one(registered: str, named: str, *, fits: bool) -> None:
    """The very same string; on a loopback address the port is free (RFC 8252, section 7.3)."""
    assert matches_uri(registered, named) is fits


@pytest.mark.parametrize(
    ("uri", "host", "source", "here"),
    [
        ("https://a.example:8443/cb", "a.example:8443", "https://a.example:8443", False),
        ("http://127.0.0.1:3000/cb", "127.0.0.1:3000", "http://127.0.0.1:3000", True),
        ("http://[::1]:3000/cb", "[::1]:3000", "http:", True),
        ("cursor://x/cb", "cursor:", "cursor:", True),
    ],
)
def test_how_a_redirect_is_shown(uri: str, host: str, source: str, *, here: bool) -> None:
    """To a person, and to the browser's policy."""
    assert (display_host(uri), csp_source(uri), is_local_redirect(uri)) == (host, source, here)
