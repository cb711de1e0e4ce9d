-- Sign-in links and sessions of the desk; the former values of changed rows.

CREATE TABLE desk_links (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    expires_at text COLLATE "C" NOT NULL CHECK (expires_at LIKE '____-__-__T__:__:__.______Z'),
    used_at text COLLATE "C" CHECK (used_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX desk_links_expiry ON desk_links (expires_at);

CREATE TABLE desk_sessions (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    digest text COLLATE "C" NOT NULL CHECK (length(digest) = 64),
    credential_id text COLLATE "C" CHECK (credential_id LIKE '________-____-____-____-____________'),
    browser text COLLATE "C" NOT NULL CHECK (length(browser) <= 200),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    expires_at text COLLATE "C" NOT NULL CHECK (expires_at LIKE '____-__-__T__:__:__.______Z'),
    revoked_at text COLLATE "C" CHECK (revoked_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE UNIQUE INDEX desk_sessions_digest ON desk_sessions (digest);

CREATE INDEX desk_sessions_expiry ON desk_sessions (expires_at);

CREATE TABLE former_rows (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    audit_id text COLLATE "C" NOT NULL CHECK (audit_id LIKE '________-____-____-____-____________'),
    table_name text COLLATE "C" NOT NULL,
    row_id text COLLATE "C" NOT NULL,
    former json,
    changed json,
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX former_rows_audit ON former_rows (audit_id);

CREATE INDEX former_rows_row ON former_rows (table_name, row_id);

CREATE INDEX former_rows_recent ON former_rows (created_at);
