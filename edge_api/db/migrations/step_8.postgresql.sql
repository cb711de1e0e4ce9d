-- Links to the desk lead to the page that somebody asked for.

ALTER TABLE desk_links ADD COLUMN target text COLLATE "C" NOT NULL DEFAULT '/desk/'
    CHECK (length(target) <= 2048);
