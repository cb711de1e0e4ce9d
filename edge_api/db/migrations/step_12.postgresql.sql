-- Version 1.1.0: counts of page views and other numbers of a day, and where a lead came from.

CREATE TABLE page_views (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    day text COLLATE "C" NOT NULL CHECK (length(day) = 10),
    path text COLLATE "C" NOT NULL CHECK (length(path) <= 500),
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('person', 'feed_reader', 'search_engine', 'ai_crawler', 'ai_assistant', 'mcp', 'markdown_reader', 'other_program')),
    agent text COLLATE "C" NOT NULL DEFAULT '' CHECK (length(agent) <= 200),
    count bigint NOT NULL CHECK (count BETWEEN -1000000000000000000 AND 1000000000000000000)
);

CREATE UNIQUE INDEX page_views_counted ON page_views (day, path, kind, agent);

CREATE TABLE daily_figures (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    day text COLLATE "C" NOT NULL CHECK (length(day) = 10),
    figure text COLLATE "C" NOT NULL CHECK (figure IN ('visitors', 'referrer', 'source', 'subscribers')),
    name text COLLATE "C" NOT NULL CHECK (length(name) <= 200),
    count bigint NOT NULL CHECK (count BETWEEN -1000000000000000000 AND 1000000000000000000)
);

CREATE UNIQUE INDEX daily_figures_counted ON daily_figures (day, figure, name);

ALTER TABLE leads ADD COLUMN origin text COLLATE "C" CHECK (origin IN ('search', 'ai_assistant', 'social', 'other_site', 'own_page', 'none'));

ALTER TABLE leads ADD COLUMN origin_page text COLLATE "C" CHECK (length(origin_page) <= 500);
