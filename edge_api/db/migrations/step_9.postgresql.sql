-- Keys that requests for access got are marked for review; a request says when its credential ends.

ALTER TABLE access_requests ADD COLUMN credential_expires_at text COLLATE "C"
    CHECK (credential_expires_at LIKE '____-__-__T__:__:__.______Z');

UPDATE access_requests SET credential_expires_at =
    to_char(decided_at::timestamptz AT TIME ZONE 'UTC' + interval '90 days', 'YYYY-MM-DD"T"HH24:MI:SS')
    || substr(decided_at, 20)
WHERE status = 'approved';

ALTER TABLE credentials ADD COLUMN needs_review bigint NOT NULL DEFAULT 0
    CHECK (needs_review BETWEEN 0 AND 1);

WITH RECURSIVE given (id) AS (
    SELECT id FROM credentials
    WHERE 'credential:' || id IN (
        SELECT actor FROM audit_log WHERE verb = 'claim' AND table_name = 'access_requests'
    )
    OR id IN (SELECT credential_id FROM access_requests WHERE credential_id IS NOT NULL)
    UNION
    SELECT successor.id FROM given
    JOIN credentials former ON former.id = given.id
    JOIN credentials successor ON successor.created_at = former.rotated_at
        AND successor.name = former.name
)
UPDATE credentials SET needs_review = 1
WHERE expires_at IS NULL AND id IN (SELECT id FROM given);

DELETE FROM former_rows WHERE table_name = 'access_requests';
-- Links say who asked for them; a rotated key keeps the end that it had.

ALTER TABLE desk_links ADD COLUMN asked_by text COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE credentials ADD COLUMN former_expires_at text COLLATE "C"
    CHECK (former_expires_at LIKE '____-__-__T__:__:__.______Z');

UPDATE credentials SET former_expires_at = expires_at WHERE rotated_at IS NOT NULL;
-- Each writer's newest group, which shows whether a commit without an answer happened.

CREATE TABLE write_marks (
    writer uuid NOT NULL PRIMARY KEY,
    number bigint NOT NULL,
    marked_at timestamptz NOT NULL DEFAULT now()
);
-- The keys of rows that were erased with the person whom they were about, so that no restore brings
-- them back.

CREATE TABLE erased_rows (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    expires_at text COLLATE "C" NOT NULL CHECK (expires_at LIKE '____-__-__T__:__:__.______Z')
);
CREATE INDEX erased_rows_expiry ON erased_rows (expires_at);
