"""The one who decides a request to the authorization server, on facts instead of a database.

No I/O: what is decided comes out as plans, which the caller writes in one transaction. Which
grants there are is not known here.
"""

from datetime import timedelta
from functools import partial
from typing import Final

from authlib.oauth2.rfc6749 import AuthorizationServer as AuthlibServer  # type: ignore[import-untyped]
from joserfc.jwk import ECKey

from edge_api.auth.actor import Actor, Change, audit_entry, new_id
from edge_api.auth.keys import end_grants
from edge_api.auth.secrets import digest_of, mint
from edge_api.auth.tokens import TOKEN_LIFE, AccessToken, Issuer, sign
from edge_api.db.oauth_tables import (
    OAUTH_GRANTS,
    REFRESH_TOKENS,
    REVOKED_TOKENS,
)
from edge_api.db.query import Delete, Filter, Insert, Query, RowCount, Update
from edge_api.db.table import Row, Table
from edge_api.db.types import spell_instant
from edge_api.oauth.client import Client
from edge_api.oauth.request import AuthRequest
from edge_api.oauth.token_context import InvalidTargetError, TokenContext
from edge_api.schema.credentials import SCOPES

REFRESH_LIFE: Final = timedelta(days=30)
"""How long a refresh token that nobody uses lives."""

UNKNOWN: Final = Actor("", "unknown", "access_token", frozenset(), client_id="unknown")
"""Whoever could not say which client it is; the audit log names it so."""


class AuthorizationServer(AuthlibServer):  # type: ignore[misc]
    """Decides one request; `plans` is what the decision has to write."""

    def __init__(self, issuer: Issuer, facts: TokenContext, signer: ECKey | None = None) -> None:
        super().__init__(scopes_supported=list(SCOPES))
        self.issuer = issuer
        self.facts = facts
        self.plans: list[Query] = []
        self._signer = signer

    def query_client(self, client_id: str) -> Client | None:
        """Return a client of the facts."""
        return self.facts.clients.get(client_id)

    def create_oauth2_request(self, request: AuthRequest) -> AuthRequest:
        """Return the request, which is Authlib's kind already."""
        return request

    def send_signal(self, name: str, *args: object, **more: object) -> None:
        """Tell nobody."""

    def check_target(self, request: AuthRequest, allowed: tuple[str, ...]) -> str:
        """Return what the token is to be for. Raises InvalidTargetError (RFC 8707, section 2)."""
        if not request.resources:
            return allowed[0]
        root = f"{self.issuer.url}/"  # RFC 3986, section 6.2.3: the same as without the slash
        named = {self.issuer.url if name == root else name for name in request.resources}
        if len(named) > 1:
            raise InvalidTargetError("Name one resource: a token is for one")
        (resource,) = named
        if resource not in allowed:
            raise InvalidTargetError(f"Tokens can be for {' or '.join(allowed)}")
        return resource

    def restrict_resource(self, request: AuthRequest, grant: Row) -> str:
        """Return what the token is to be for: what was granted, or the part that is named.

        Raises InvalidTargetError (RFC 8707, section 2.2).
        """
        return self.check_target(request, self.issuer.within(grant["resource"]))

    def issue_token(self, client: Client, scope: str, grant: Row | None, resource: str) -> Row:
        """Return an access token's answer (RFC 6749, section 5.1), and note that it was given."""
        facts = self.facts
        token = AccessToken(
            id=new_id(facts.now),
            subject=grant["credential_id"] if grant else client.client_id,
            client_id=client.client_id,
            scopes=tuple(scope.split()),
            resource=resource,
            grant_id=grant["id"] if grant else None,
            expires_at=facts.now + TOKEN_LIFE,
        )
        assert self._signer is not None  # noqa: S101  whoever asks for tokens brings a key
        self.note("issue", OAUTH_GRANTS, client)
        return {
            "access_token": sign(token, self.issuer.url, self._signer),
            "token_type": "Bearer",
            "expires_in": int(TOKEN_LIFE.total_seconds()),
            "scope": scope,
        }

    def hand_out_refreshing(self, client: Client, scope: str, grant: Row, resource: str) -> Row:
        """Return the same with a refresh token, where the client may have one."""
        answer = self.issue_token(client, scope, grant, resource)
        if client.check_grant_type("refresh_token"):
            answer["refresh_token"] = self._new_refresh_token(grant)
        return answer

    def use_once(self, table: Table, row: Row) -> None:
        """Note that a code or token is used; a second use at the same moment finds a conflict."""
        unused = (Filter("id", "eq", row["id"]), Filter("used_at", "is", None))
        self.plans.append(Update(table, {"used_at": self.facts.present}, unused, at_least=1))

    def revoke_grant(self, client: Client) -> None:
        """Note that the grant ends, with all that it gave (RFC 9700, sections 2.1.1 and 4.14)."""
        grant = self.facts.grant
        if grant is not None and grant["revoked_at"] is None:
            self.plans.append(end_grants(Filter("id", "eq", grant["id"]), self.facts.present))
            self.note("revoke", OAUTH_GRANTS, client, RowCount(len(self.plans) - 1))

    def revoke_token(self, token: AccessToken, client: Client) -> None:
        """Note that an access token ends, alone; it may have been taken back before."""
        row = {"id": token.id, "expires_at": spell_instant(token.expires_at)}
        same = (Filter("id", "eq", token.id),)
        self.plans += [Delete(REVOKED_TOKENS, same), Insert(REVOKED_TOKENS, [row])]
        self.note("revoke", REVOKED_TOKENS, client)

    def _new_refresh_token(self, grant: Row) -> str:
        secret, now = mint("refresh_token"), self.facts.now
        given = {
            "id": digest_of(secret),
            "grant_id": grant["id"],
            "expires_at": spell_instant(now + REFRESH_LIFE),
        }
        row = REFRESH_TOKENS.new_row(given, self.facts.present, partial(new_id, now))
        self.plans.append(Insert(REFRESH_TOKENS, [row]))
        return secret

    def note(self, verb: str, table: Table, client: Client, rows: int | RowCount = 1) -> None:
        """Note for the audit log what is done on behalf of a client."""
        actor = client_actor(client, self.facts.grant)
        self.plans.append(audit_entry(actor, Change(verb, table, rows), self.facts.now))


def client_actor(client: Client, grant: Row | None = None) -> Actor:
    """Return a client as the audit log names it, with the key that it acts for."""
    key = grant["credential_id"] if grant else ""
    return Actor(key, client.row["name"], "access_token", frozenset(), client_id=client.client_id)
