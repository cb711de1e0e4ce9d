-- Version 1.1.0: answers to leads, what comes back, how far a mailbox was read, and reminders.

ALTER TABLE leads ADD COLUMN remind_at text COLLATE "C"
    CHECK (remind_at LIKE '____-__-__T__:__:__.______Z');

CREATE INDEX leads_remind ON leads (remind_at);

CREATE TABLE lead_messages (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    lead_id text COLLATE "C" NOT NULL CHECK (lead_id LIKE '________-____-____-____-____________'),
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('draft', 'sent', 'received')),
    email text COLLATE "C" NOT NULL CHECK (length(email) BETWEEN 3 AND 255),
    subject text COLLATE "C" NOT NULL DEFAULT '' CHECK (length(subject) <= 200),
    body text COLLATE "C" NOT NULL DEFAULT '' CHECK (length(body) <= 100000),
    message_digest text COLLATE "C" CHECK (length(message_digest) = 64),
    message_id text COLLATE "C" CHECK (length(message_id) <= 250),
    is_verified bigint NOT NULL DEFAULT 0 CHECK (is_verified BETWEEN 0 AND 1),
    is_automatic bigint NOT NULL DEFAULT 0 CHECK (is_automatic BETWEEN 0 AND 1),
    attachments json,
    audit_id text COLLATE "C" CHECK (audit_id LIKE '________-____-____-____-____________'),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX lead_messages_lead ON lead_messages (lead_id, created_at);

CREATE INDEX lead_messages_kind ON lead_messages (kind, created_at DESC, id DESC);

CREATE UNIQUE INDEX lead_messages_digest ON lead_messages (message_digest);

CREATE TABLE mailbox_state (
    id bigint NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    mailbox_digest text COLLATE "C" NOT NULL DEFAULT '',
    uid_validity bigint NOT NULL DEFAULT 0 CHECK (uid_validity BETWEEN -1000000000000000000 AND 1000000000000000000),
    last_uid bigint NOT NULL DEFAULT 0 CHECK (last_uid BETWEEN -1000000000000000000 AND 1000000000000000000),
    turn_until text COLLATE "C" CHECK (turn_until LIKE '____-__-__T__:__:__.______Z'),
    checked_at text COLLATE "C" CHECK (checked_at LIKE '____-__-__T__:__:__.______Z'),
    fault text COLLATE "C"
);
