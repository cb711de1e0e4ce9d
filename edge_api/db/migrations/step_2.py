"""Step 2: the authorization server, and requests for access. Never edited: see the package."""

from edge_api.db.migrations.step import in_both_dialects

STEP = in_both_dialects(
    "The authorization server: clients, grants, codes, tokens, signing keys; requests for access.",
    (
        """
        CREATE TABLE oauth_clients (
            id TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 2048),
            kind TEXT NOT NULL CHECK (kind IN ('registered', 'dynamic', 'document')),
            name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
            auth_method TEXT NOT NULL DEFAULT 'none'
                CHECK (auth_method IN ('none', 'client_secret_basic', 'client_secret_post',
                    'private_key_jwt')),
            secret_digest TEXT CHECK (length(secret_digest) = 64),
            secret_last_four TEXT CHECK (length(secret_last_four) = 4),
            redirect_uris TEXT NOT NULL,
            grant_types TEXT NOT NULL,
            scopes TEXT NOT NULL,
            jwks TEXT CHECK (jwks IS NULL OR json_valid(jwks)),
            created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z'),
            fresh_until TEXT CHECK (fresh_until GLOB '????-??-??T??:??:??.??????Z'),
            last_used_at TEXT CHECK (last_used_at GLOB '????-??-??T??:??:??.??????Z'),
            revoked_at TEXT CHECK (revoked_at GLOB '????-??-??T??:??:??.??????Z')
        ) STRICT
        """,
        "CREATE INDEX oauth_clients_recent ON oauth_clients (kind, created_at)",
        """
        CREATE TABLE oauth_grants (
            id TEXT NOT NULL PRIMARY KEY
                CHECK (id GLOB '????????-????-????-????-????????????'),
            client_id TEXT NOT NULL CHECK (length(client_id) BETWEEN 1 AND 2048),
            credential_id TEXT NOT NULL
                CHECK (credential_id GLOB '????????-????-????-????-????????????'),
            scopes TEXT NOT NULL,
            resource TEXT NOT NULL CHECK (length(resource) BETWEEN 1 AND 2048),
            created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z'),
            revoked_at TEXT CHECK (revoked_at GLOB '????-??-??T??:??:??.??????Z')
        ) STRICT
        """,
        "CREATE INDEX oauth_grants_credential ON oauth_grants (credential_id)",
        "CREATE INDEX oauth_grants_client ON oauth_grants (client_id)",
        """
        CREATE TABLE oauth_codes (
            id TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 64),
            grant_id TEXT NOT NULL
                CHECK (grant_id GLOB '????????-????-????-????-????????????'),
            redirect_uri TEXT NOT NULL CHECK (length(redirect_uri) BETWEEN 1 AND 2048),
            challenge TEXT NOT NULL CHECK (length(challenge) = 43),
            created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z'),
            expires_at TEXT NOT NULL CHECK (expires_at GLOB '????-??-??T??:??:??.??????Z'),
            used_at TEXT CHECK (used_at GLOB '????-??-??T??:??:??.??????Z')
        ) STRICT
        """,
        "CREATE INDEX oauth_codes_expiry ON oauth_codes (expires_at)",
        """
        CREATE TABLE oauth_refresh_tokens (
            id TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 64),
            grant_id TEXT NOT NULL
                CHECK (grant_id GLOB '????????-????-????-????-????????????'),
            created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z'),
            expires_at TEXT NOT NULL CHECK (expires_at GLOB '????-??-??T??:??:??.??????Z'),
            used_at TEXT CHECK (used_at GLOB '????-??-??T??:??:??.??????Z')
        ) STRICT
        """,
        "CREATE INDEX oauth_refresh_tokens_expiry ON oauth_refresh_tokens (expires_at)",
        "CREATE INDEX oauth_refresh_tokens_grant ON oauth_refresh_tokens (grant_id)",
        """
        CREATE TABLE oauth_revoked_tokens (
            id TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
            expires_at TEXT NOT NULL CHECK (expires_at GLOB '????-??-??T??:??:??.??????Z')
        ) STRICT
        """,
        "CREATE INDEX oauth_revoked_tokens_expiry ON oauth_revoked_tokens (expires_at)",
        """
        CREATE TABLE oauth_assertions (
            id TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 64),
            expires_at TEXT NOT NULL CHECK (expires_at GLOB '????-??-??T??:??:??.??????Z')
        ) STRICT
        """,
        "CREATE INDEX oauth_assertions_expiry ON oauth_assertions (expires_at)",
        """
        CREATE TABLE oauth_signing_keys (
            id TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
            private_key TEXT NOT NULL,
            created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z'),
            active_from TEXT NOT NULL CHECK (active_from GLOB '????-??-??T??:??:??.??????Z')
        ) STRICT
        """,
        """
        CREATE TABLE access_requests (
            id TEXT NOT NULL PRIMARY KEY
                CHECK (id GLOB '????????-????-????-????-????????????'),
            type TEXT NOT NULL CHECK (type IN ('api_key', 'access_token')),
            name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
            email TEXT CHECK (length(email) BETWEEN 3 AND 255),
            purpose TEXT NOT NULL CHECK (length(purpose) BETWEEN 1 AND 2000),
            scopes TEXT NOT NULL,
            claim_digest TEXT NOT NULL CHECK (length(claim_digest) = 64),
            status TEXT NOT NULL DEFAULT 'pending'
                CHECK (status IN ('pending', 'approved', 'denied', 'claimed')),
            created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z'),
            expires_at TEXT NOT NULL CHECK (expires_at GLOB '????-??-??T??:??:??.??????Z'),
            decided_at TEXT CHECK (decided_at GLOB '????-??-??T??:??:??.??????Z'),
            credential_id TEXT
                CHECK (credential_id GLOB '????????-????-????-????-????????????')
        ) STRICT
        """,
        "CREATE UNIQUE INDEX access_requests_claim ON access_requests (claim_digest)",
        "CREATE INDEX access_requests_status ON access_requests (status, created_at)",
        "CREATE INDEX access_requests_expiry ON access_requests (expires_at)",
    ),
)
