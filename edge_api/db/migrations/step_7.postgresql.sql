-- Webhooks of posts: the events that an endpoint chose, and the posts that were announced last.

ALTER TABLE webhook_endpoints ADD COLUMN events text COLLATE "C" NOT NULL DEFAULT 'lead.created';

CREATE TABLE announced_posts (
    id bigint NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    index_digest text COLLATE "C" NOT NULL CHECK (length(index_digest) = 64),
    built_for text COLLATE "C" NOT NULL CHECK (built_for LIKE '____-__-__T__:__:__.______Z'),
    posts text COLLATE "C" NOT NULL
);
