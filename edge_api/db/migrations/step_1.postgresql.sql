-- The administrative tables, and the service's own: credentials, answers to repeated requests,
-- the audit log.

CREATE TABLE leads (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    name text COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    email text COLLATE "C" NOT NULL CHECK (length(email) BETWEEN 3 AND 255),
    budget_tier text COLLATE "C" NOT NULL CHECK (length(budget_tier) BETWEEN 1 AND 50),
    message text COLLATE "C" NOT NULL CHECK (length(message) BETWEEN 1 AND 2000),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    updated_at text COLLATE "C" NOT NULL CHECK (updated_at LIKE '____-__-__T__:__:__.______Z'),
    status text COLLATE "C" NOT NULL DEFAULT 'new'
        CHECK (status IN ('new', 'contacted', 'qualified', 'won', 'lost', 'spam')),
    notes text COLLATE "C",
    source text COLLATE "C" NOT NULL DEFAULT 'api'
        CHECK (source IN ('api', 'form', 'mcp', 'admin')),
    spam_score bigint NOT NULL DEFAULT 0
        CHECK (spam_score BETWEEN -1000000000000000000 AND 1000000000000000000),
    spam_reasons json,
    consent_at text COLLATE "C" CHECK (consent_at LIKE '____-__-__T__:__:__.______Z'),
    consent_text text COLLATE "C",
    dedupe_hash text COLLATE "C"
);

CREATE INDEX leads_recent ON leads (created_at DESC, id DESC);

CREATE INDEX leads_email ON leads (email);

CREATE INDEX leads_status ON leads (status, created_at DESC, id DESC);

CREATE INDEX leads_budget_tier ON leads (budget_tier, created_at DESC, id DESC);

CREATE INDEX leads_dedupe ON leads (dedupe_hash, created_at);

CREATE TABLE email_send_log (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    message_id text COLLATE "C",
    template_name text COLLATE "C" NOT NULL CHECK (length(template_name) BETWEEN 1 AND 200),
    recipient_email text COLLATE "C" NOT NULL CHECK (length(recipient_email) BETWEEN 3 AND 255),
    status text COLLATE "C" NOT NULL
        CHECK (status IN ('pending', 'sent', 'suppressed', 'failed', 'bounced',
            'complained', 'dlq', 'rate_limited', 'soft_bounced')),
    error_message text COLLATE "C" CHECK (length(error_message) <= 1000),
    metadata json,
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX email_send_log_recent ON email_send_log (created_at DESC, id DESC);

CREATE INDEX email_send_log_recipient ON email_send_log (recipient_email);

CREATE INDEX email_send_log_message ON email_send_log (message_id, status);

CREATE UNIQUE INDEX email_send_log_sent_once ON email_send_log (message_id)
    WHERE status = 'sent';

CREATE TABLE email_send_state (
    id bigint NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    retry_after_until text COLLATE "C" CHECK (retry_after_until LIKE '____-__-__T__:__:__.______Z'),
    batch_size bigint NOT NULL DEFAULT 10 CHECK (batch_size BETWEEN 1 AND 1000),
    send_delay_ms bigint NOT NULL DEFAULT 200
        CHECK (send_delay_ms BETWEEN 0 AND 60000),
    auth_email_ttl_minutes bigint NOT NULL DEFAULT 15
        CHECK (auth_email_ttl_minutes BETWEEN 1 AND 10080),
    transactional_email_ttl_minutes bigint NOT NULL DEFAULT 60
        CHECK (transactional_email_ttl_minutes BETWEEN 1 AND 10080),
    updated_at text COLLATE "C" NOT NULL CHECK (updated_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE TABLE email_unsubscribe_tokens (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    token text COLLATE "C" NOT NULL CHECK (length(token) BETWEEN 32 AND 128),
    email text COLLATE "C" NOT NULL
        CHECK (length(email) BETWEEN 3 AND 255 AND email = lower(email)),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    used_at text COLLATE "C" CHECK (used_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE UNIQUE INDEX email_unsubscribe_tokens_token ON email_unsubscribe_tokens (token);

CREATE UNIQUE INDEX email_unsubscribe_tokens_email ON email_unsubscribe_tokens (email);

CREATE TABLE suppressed_emails (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    email text COLLATE "C" NOT NULL
        CHECK (length(email) BETWEEN 3 AND 255 AND email = lower(email)),
    reason text COLLATE "C" NOT NULL CHECK (reason IN ('unsubscribe', 'bounce', 'complaint')),
    metadata json,
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE UNIQUE INDEX suppressed_emails_email ON suppressed_emails (email);

CREATE TABLE credentials (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    name text COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    type text COLLATE "C" NOT NULL CHECK (type IN ('api_key', 'access_token')),
    digest text COLLATE "C" NOT NULL CHECK (length(digest) = 64),
    last_four text COLLATE "C" NOT NULL CHECK (length(last_four) = 4),
    scopes text COLLATE "C" NOT NULL,
    tables text COLLATE "C",
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    expires_at text COLLATE "C" CHECK (expires_at LIKE '____-__-__T__:__:__.______Z'),
    revoked_at text COLLATE "C" CHECK (revoked_at LIKE '____-__-__T__:__:__.______Z'),
    rotated_at text COLLATE "C" CHECK (rotated_at LIKE '____-__-__T__:__:__.______Z'),
    last_used_at text COLLATE "C" CHECK (last_used_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE UNIQUE INDEX credentials_digest ON credentials (digest);

CREATE TABLE idempotency_keys (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(id) = 64),
    request_digest text COLLATE "C" NOT NULL CHECK (length(request_digest) = 64),
    status bigint NOT NULL
        CHECK (status BETWEEN -1000000000000000000 AND 1000000000000000000),
    response text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z'),
    expires_at text COLLATE "C" NOT NULL CHECK (expires_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

CREATE TABLE audit_log (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    at text COLLATE "C" NOT NULL CHECK (at LIKE '____-__-__T__:__:__.______Z'),
    actor text COLLATE "C" NOT NULL,
    verb text COLLATE "C" NOT NULL,
    table_name text COLLATE "C" NOT NULL,
    columns text COLLATE "C" NOT NULL,
    rows bigint NOT NULL
        CHECK (rows BETWEEN -1000000000000000000 AND 1000000000000000000)
);

CREATE INDEX audit_log_recent ON audit_log (at DESC, id DESC);

INSERT INTO email_send_state (id, updated_at) VALUES (1, current_setting('fore_edge.now'));
