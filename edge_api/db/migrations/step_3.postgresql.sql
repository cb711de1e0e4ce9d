-- Mail that waits to be sent; webhooks and what waits to be told to them.

CREATE TABLE email_outbox (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    queue text COLLATE "C" NOT NULL CHECK (queue IN ('auth', 'transactional')),
    template_name text COLLATE "C" NOT NULL CHECK (length(template_name) BETWEEN 1 AND 200),
    recipient_email text COLLATE "C" NOT NULL CHECK (length(recipient_email) BETWEEN 3 AND 255),
    subject_id text COLLATE "C" NOT NULL
        CHECK (subject_id LIKE '________-____-____-____-____________'),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    queued_at text COLLATE "C" NOT NULL CHECK (queued_at LIKE '____-__-__T__:__:__.______Z'),
    due_at text COLLATE "C" NOT NULL CHECK (due_at LIKE '____-__-__T__:__:__.______Z'),
    lease text COLLATE "C",
    claims bigint NOT NULL DEFAULT 0
        CHECK (claims BETWEEN -1000000000000000000 AND 1000000000000000000),
    attempts bigint NOT NULL DEFAULT 0
        CHECK (attempts BETWEEN -1000000000000000000 AND 1000000000000000000),
    dead_at text COLLATE "C" CHECK (dead_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX email_outbox_due ON email_outbox (dead_at, due_at);

CREATE INDEX email_outbox_subject ON email_outbox (subject_id);

CREATE TABLE webhook_endpoints (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    url text COLLATE "C" NOT NULL CHECK (length(url) BETWEEN 1 AND 2048),
    secret text COLLATE "C" NOT NULL,
    former_secret text COLLATE "C",
    former_until text COLLATE "C" CHECK (former_until LIKE '____-__-__T__:__:__.______Z'),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    disabled_at text COLLATE "C" CHECK (disabled_at LIKE '____-__-__T__:__:__.______Z'),
    disabled_for text COLLATE "C"
);

CREATE UNIQUE INDEX webhook_endpoints_url ON webhook_endpoints (url);

CREATE TABLE webhook_deliveries (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    endpoint_id text COLLATE "C" NOT NULL
        CHECK (endpoint_id LIKE '________-____-____-____-____________'),
    event text COLLATE "C" NOT NULL CHECK (length(event) BETWEEN 1 AND 100),
    subject_id text COLLATE "C" NOT NULL
        CHECK (subject_id LIKE '________-____-____-____-____________'),
    body text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    due_at text COLLATE "C" NOT NULL CHECK (due_at LIKE '____-__-__T__:__:__.______Z'),
    lease text COLLATE "C",
    attempts bigint NOT NULL DEFAULT 0
        CHECK (attempts BETWEEN -1000000000000000000 AND 1000000000000000000),
    last_answer text COLLATE "C",
    dead_at text COLLATE "C" CHECK (dead_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (dead_at, due_at);

CREATE INDEX webhook_deliveries_subject ON webhook_deliveries (subject_id);
