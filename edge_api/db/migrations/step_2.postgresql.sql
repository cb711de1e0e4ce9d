-- The authorization server: clients, grants, codes, tokens, signing keys; requests for access.

CREATE TABLE oauth_clients (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 2048),
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('registered', 'dynamic', 'document')),
    name text COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    auth_method text COLLATE "C" NOT NULL DEFAULT 'none'
        CHECK (auth_method IN ('none', 'client_secret_basic', 'client_secret_post',
            'private_key_jwt')),
    secret_digest text COLLATE "C" CHECK (length(secret_digest) = 64),
    secret_last_four text COLLATE "C" CHECK (length(secret_last_four) = 4),
    redirect_uris text COLLATE "C" NOT NULL,
    grant_types text COLLATE "C" NOT NULL,
    scopes text COLLATE "C" NOT NULL,
    jwks json,
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    fresh_until text COLLATE "C" CHECK (fresh_until LIKE '____-__-__T__:__:__.______Z'),
    last_used_at text COLLATE "C" CHECK (last_used_at LIKE '____-__-__T__:__:__.______Z'),
    revoked_at text COLLATE "C" CHECK (revoked_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX oauth_clients_recent ON oauth_clients (kind, created_at);

CREATE TABLE oauth_grants (
    id text COLLATE "C" NOT NULL PRIMARY KEY
        CHECK (id LIKE '________-____-____-____-____________'),
    client_id text COLLATE "C" NOT NULL CHECK (length(client_id) BETWEEN 1 AND 2048),
    credential_id text COLLATE "C" NOT NULL
        CHECK (credential_id LIKE '________-____-____-____-____________'),
    scopes text COLLATE "C" NOT NULL,
    resource text COLLATE "C" NOT NULL CHECK (length(resource) BETWEEN 1 AND 2048),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    revoked_at text COLLATE "C" CHECK (revoked_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX oauth_grants_credential ON oauth_grants (credential_id);

CREATE INDEX oauth_grants_client ON oauth_grants (client_id);

CREATE TABLE oauth_codes (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(id) = 64),
    grant_id text COLLATE "C" NOT NULL
        CHECK (grant_id LIKE '________-____-____-____-____________'),
    redirect_uri text COLLATE "C" NOT NULL CHECK (length(redirect_uri) BETWEEN 1 AND 2048),
    challenge text COLLATE "C" NOT NULL CHECK (length(challenge) = 43),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    expires_at text COLLATE "C" NOT NULL CHECK (expires_at LIKE '____-__-__T__:__:__.______Z'),
    used_at text COLLATE "C" CHECK (used_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX oauth_codes_expiry ON oauth_codes (expires_at);

CREATE TABLE oauth_refresh_tokens (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(id) = 64),
    grant_id text COLLATE "C" NOT NULL
        CHECK (grant_id LIKE '________-____-____-____-____________'),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    expires_at text COLLATE "C" NOT NULL CHECK (expires_at LIKE '____-__-__T__:__:__.______Z'),
    used_at text COLLATE "C" CHECK (used_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX oauth_refresh_tokens_expiry ON oauth_refresh_tokens (expires_at);

CREATE INDEX oauth_refresh_tokens_grant ON oauth_refresh_tokens (grant_id);

CREATE TABLE oauth_revoked_tokens (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    expires_at text COLLATE "C" NOT NULL CHECK (expires_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX oauth_revoked_tokens_expiry ON oauth_revoked_tokens (expires_at);

CREATE TABLE oauth_assertions (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(id) = 64),
    expires_at text COLLATE "C" NOT NULL CHECK (expires_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX oauth_assertions_expiry ON oauth_assertions (expires_at);

CREATE TABLE oauth_signing_keys (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    private_key text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    active_from text COLLATE "C" NOT NULL CHECK (active_from LIKE '____-__-__T__:__:__.______Z')
);

CREATE TABLE access_requests (
    id text COLLATE "C" NOT NULL PRIMARY KEY
        CHECK (id LIKE '________-____-____-____-____________'),
    type text COLLATE "C" NOT NULL CHECK (type IN ('api_key', 'access_token')),
    name text COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    email text COLLATE "C" CHECK (length(email) BETWEEN 3 AND 255),
    purpose text COLLATE "C" NOT NULL CHECK (length(purpose) BETWEEN 1 AND 2000),
    scopes text COLLATE "C" NOT NULL,
    claim_digest text COLLATE "C" NOT NULL CHECK (length(claim_digest) = 64),
    status text COLLATE "C" NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'approved', 'denied', 'claimed')),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    expires_at text COLLATE "C" NOT NULL CHECK (expires_at LIKE '____-__-__T__:__:__.______Z'),
    decided_at text COLLATE "C" CHECK (decided_at LIKE '____-__-__T__:__:__.______Z'),
    credential_id text COLLATE "C"
        CHECK (credential_id LIKE '________-____-____-____-____________')
);

CREATE UNIQUE INDEX access_requests_claim ON access_requests (claim_digest);

CREATE INDEX access_requests_status ON access_requests (status, created_at);

CREATE INDEX access_requests_expiry ON access_requests (expires_at);
