-- The keys of rows that were erased with the person whom they were about, so that no restore brings
-- them back.

CREATE TABLE erased_rows (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    expires_at text COLLATE "C" NOT NULL CHECK (expires_at LIKE '____-__-__T__:__:__.______Z')
);
CREATE INDEX erased_rows_expiry ON erased_rows (expires_at);
