-- Version 1.1.0: subscribers of the newsletter, its mailings, and their queue of mail.

ALTER TABLE email_outbox DROP CONSTRAINT email_outbox_queue_check;

ALTER TABLE email_outbox ADD CONSTRAINT email_outbox_queue_check
    CHECK (queue IN ('auth', 'transactional', 'newsletter'));

CREATE TABLE subscribers (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    email text COLLATE "C" NOT NULL CHECK (length(email) BETWEEN 3 AND 255 AND email = lower(email)),
    status text COLLATE "C" NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'active', 'ended', 'bounced')),
    token text COLLATE "C" NOT NULL CHECK (length(token) = 64),
    language text COLLATE "C" NOT NULL DEFAULT '' CHECK (length(language) <= 35),
    source text COLLATE "C" NOT NULL DEFAULT '' CHECK (length(source) <= 200),
    consent text COLLATE "C" NOT NULL DEFAULT '' CHECK (length(consent) <= 1000),
    asked_at text COLLATE "C" CHECK (asked_at LIKE '____-__-__T__:__:__.______Z'),
    confirmed_at text COLLATE "C" CHECK (confirmed_at LIKE '____-__-__T__:__:__.______Z'),
    ended_at text COLLATE "C" CHECK (ended_at LIKE '____-__-__T__:__:__.______Z'),
    ended_by text COLLATE "C" CHECK (length(ended_by) <= 200),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE UNIQUE INDEX subscribers_email ON subscribers (email);

CREATE UNIQUE INDEX subscribers_token ON subscribers (token);

CREATE INDEX subscribers_status ON subscribers (status, id);

CREATE INDEX subscribers_asked ON subscribers (asked_at DESC);

CREATE TABLE mailings (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    slug text COLLATE "C" NOT NULL CHECK (length(slug) BETWEEN 1 AND 200),
    subject text COLLATE "C" NOT NULL CHECK (length(subject) <= 300),
    url text COLLATE "C" NOT NULL CHECK (length(url) <= 2048),
    text_digest text COLLATE "C" NOT NULL CHECK (length(text_digest) = 64),
    host text COLLATE "C" NOT NULL CHECK (length(host) <= 255),
    waits_for text COLLATE "C" NOT NULL DEFAULT '' CHECK (length(waits_for) <= 200),
    due_at text COLLATE "C" CHECK (due_at LIKE '____-__-__T__:__:__.______Z'),
    cursor text COLLATE "C" NOT NULL DEFAULT '',
    recipients bigint NOT NULL DEFAULT 0 CHECK (recipients BETWEEN -1000000000000000000 AND 1000000000000000000),
    queued_at text COLLATE "C" CHECK (queued_at LIKE '____-__-__T__:__:__.______Z'),
    held_at text COLLATE "C" CHECK (held_at LIKE '____-__-__T__:__:__.______Z'),
    held_for text COLLATE "C" CHECK (length(held_for) <= 200),
    resumed_at text COLLATE "C" CHECK (resumed_at LIKE '____-__-__T__:__:__.______Z'),
    ended_at text COLLATE "C" CHECK (ended_at LIKE '____-__-__T__:__:__.______Z'),
    ended_for text COLLATE "C" CHECK (length(ended_for) <= 200),
    created_at text COLLATE "C" NOT NULL CHECK (created_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE UNIQUE INDEX mailings_slug ON mailings (slug);

CREATE INDEX mailings_recent ON mailings (created_at DESC, id DESC);

ALTER TABLE announced_posts ADD COLUMN texts text COLLATE "C" NOT NULL DEFAULT '';
