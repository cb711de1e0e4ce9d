-- Version 1.1.0: counts of page views and other numbers of a day, and where a lead came from.

CREATE TABLE page_views (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    day TEXT NOT NULL CHECK (length(day) = 10),
    path TEXT NOT NULL CHECK (length(path) <= 500),
    kind TEXT NOT NULL CHECK (kind IN ('person', 'feed_reader', 'search_engine', 'ai_crawler', 'ai_assistant', 'mcp', 'markdown_reader', 'other_program')),
    agent TEXT NOT NULL DEFAULT '' CHECK (length(agent) <= 200),
    count INTEGER NOT NULL CHECK (count BETWEEN -1000000000000000000 AND 1000000000000000000)
) STRICT;

CREATE UNIQUE INDEX page_views_counted ON page_views (day, path, kind, agent);

CREATE TABLE daily_figures (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    day TEXT NOT NULL CHECK (length(day) = 10),
    figure TEXT NOT NULL CHECK (figure IN ('visitors', 'referrer', 'source', 'subscribers')),
    name TEXT NOT NULL CHECK (length(name) <= 200),
    count INTEGER NOT NULL CHECK (count BETWEEN -1000000000000000000 AND 1000000000000000000)
) STRICT;

CREATE UNIQUE INDEX daily_figures_counted ON daily_figures (day, figure, name);

ALTER TABLE leads ADD COLUMN origin TEXT CHECK (origin IN ('search', 'ai_assistant', 'social', 'other_site', 'own_page', 'none'));

ALTER TABLE leads ADD COLUMN origin_page TEXT CHECK (length(origin_page) <= 500);
