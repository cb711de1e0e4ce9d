-- Links say who asked for them; a rotated key keeps the end that it had.

ALTER TABLE desk_links ADD COLUMN asked_by text COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE credentials ADD COLUMN former_expires_at text COLLATE "C"
    CHECK (former_expires_at LIKE '____-__-__T__:__:__.______Z');

UPDATE credentials SET former_expires_at = expires_at WHERE rotated_at IS NOT NULL;
