-- The administrative tables, and the service's own: credentials, answers to repeated requests,
-- the audit log.

CREATE TABLE leads (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    email TEXT NOT NULL CHECK (length(email) BETWEEN 3 AND 255),
    budget_tier TEXT NOT NULL CHECK (length(budget_tier) BETWEEN 1 AND 50),
    message TEXT NOT NULL CHECK (length(message) BETWEEN 1 AND 2000),
    created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z'),
    updated_at TEXT NOT NULL CHECK (updated_at GLOB '????-??-??T??:??:??.??????Z'),
    status TEXT NOT NULL DEFAULT 'new'
        CHECK (status IN ('new', 'contacted', 'qualified', 'won', 'lost', 'spam')),
    notes TEXT,
    source TEXT NOT NULL DEFAULT 'api'
        CHECK (source IN ('api', 'form', 'mcp', 'admin')),
    spam_score INTEGER NOT NULL DEFAULT 0
        CHECK (spam_score BETWEEN -1000000000000000000 AND 1000000000000000000),
    spam_reasons TEXT CHECK (spam_reasons IS NULL OR json_valid(spam_reasons)),
    consent_at TEXT CHECK (consent_at GLOB '????-??-??T??:??:??.??????Z'),
    consent_text TEXT,
    dedupe_hash TEXT
) STRICT;

CREATE INDEX leads_recent ON leads (created_at DESC, id DESC);

CREATE INDEX leads_email ON leads (email);

CREATE INDEX leads_status ON leads (status, created_at DESC, id DESC);

CREATE INDEX leads_budget_tier ON leads (budget_tier, created_at DESC, id DESC);

CREATE INDEX leads_dedupe ON leads (dedupe_hash, created_at);

CREATE TABLE email_send_log (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    message_id TEXT,
    template_name TEXT NOT NULL CHECK (length(template_name) BETWEEN 1 AND 200),
    recipient_email TEXT NOT NULL CHECK (length(recipient_email) BETWEEN 3 AND 255),
    status TEXT NOT NULL
        CHECK (status IN ('pending', 'sent', 'suppressed', 'failed', 'bounced',
            'complained', 'dlq', 'rate_limited', 'soft_bounced')),
    error_message TEXT CHECK (length(error_message) <= 1000),
    metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z')
) STRICT;

CREATE INDEX email_send_log_recent ON email_send_log (created_at DESC, id DESC);

CREATE INDEX email_send_log_recipient ON email_send_log (recipient_email);

CREATE INDEX email_send_log_message ON email_send_log (message_id, status);

CREATE UNIQUE INDEX email_send_log_sent_once ON email_send_log (message_id)
    WHERE status = 'sent';

CREATE TABLE email_send_state (
    id INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    retry_after_until TEXT CHECK (retry_after_until GLOB '????-??-??T??:??:??.??????Z'),
    batch_size INTEGER NOT NULL DEFAULT 10 CHECK (batch_size BETWEEN 1 AND 1000),
    send_delay_ms INTEGER NOT NULL DEFAULT 200
        CHECK (send_delay_ms BETWEEN 0 AND 60000),
    auth_email_ttl_minutes INTEGER NOT NULL DEFAULT 15
        CHECK (auth_email_ttl_minutes BETWEEN 1 AND 10080),
    transactional_email_ttl_minutes INTEGER NOT NULL DEFAULT 60
        CHECK (transactional_email_ttl_minutes BETWEEN 1 AND 10080),
    updated_at TEXT NOT NULL CHECK (updated_at GLOB '????-??-??T??:??:??.??????Z')
) STRICT;

CREATE TABLE email_unsubscribe_tokens (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    token TEXT NOT NULL CHECK (length(token) BETWEEN 32 AND 128),
    email TEXT NOT NULL
        CHECK (length(email) BETWEEN 3 AND 255 AND email = lower(email)),
    created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z'),
    used_at TEXT CHECK (used_at GLOB '????-??-??T??:??:??.??????Z')
) STRICT;

CREATE UNIQUE INDEX email_unsubscribe_tokens_token ON email_unsubscribe_tokens (token);

CREATE UNIQUE INDEX email_unsubscribe_tokens_email ON email_unsubscribe_tokens (email);

CREATE TABLE suppressed_emails (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    email TEXT NOT NULL
        CHECK (length(email) BETWEEN 3 AND 255 AND email = lower(email)),
    reason TEXT NOT NULL CHECK (reason IN ('unsubscribe', 'bounce', 'complaint')),
    metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z')
) STRICT;

CREATE UNIQUE INDEX suppressed_emails_email ON suppressed_emails (email);

CREATE TABLE credentials (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    type TEXT NOT NULL CHECK (type IN ('api_key', 'access_token')),
    digest TEXT NOT NULL CHECK (length(digest) = 64),
    last_four TEXT NOT NULL CHECK (length(last_four) = 4),
    scopes TEXT NOT NULL,
    tables TEXT,
    created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z'),
    expires_at TEXT CHECK (expires_at GLOB '????-??-??T??:??:??.??????Z'),
    revoked_at TEXT CHECK (revoked_at GLOB '????-??-??T??:??:??.??????Z'),
    rotated_at TEXT CHECK (rotated_at GLOB '????-??-??T??:??:??.??????Z'),
    last_used_at TEXT CHECK (last_used_at GLOB '????-??-??T??:??:??.??????Z')
) STRICT;

CREATE UNIQUE INDEX credentials_digest ON credentials (digest);

CREATE TABLE idempotency_keys (
    id TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 64),
    request_digest TEXT NOT NULL CHECK (length(request_digest) = 64),
    status INTEGER NOT NULL
        CHECK (status BETWEEN -1000000000000000000 AND 1000000000000000000),
    response TEXT NOT NULL,
    created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z'),
    expires_at TEXT NOT NULL CHECK (expires_at GLOB '????-??-??T??:??:??.??????Z')
) STRICT;

CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

CREATE TABLE audit_log (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    at TEXT NOT NULL CHECK (at GLOB '????-??-??T??:??:??.??????Z'),
    actor TEXT NOT NULL,
    verb TEXT NOT NULL,
    table_name TEXT NOT NULL,
    columns TEXT NOT NULL,
    rows INTEGER NOT NULL
        CHECK (rows BETWEEN -1000000000000000000 AND 1000000000000000000)
) STRICT;

CREATE INDEX audit_log_recent ON audit_log (at DESC, id DESC);

INSERT INTO email_send_state (id, updated_at) VALUES (1, :now);
