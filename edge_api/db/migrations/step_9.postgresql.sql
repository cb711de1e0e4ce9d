-- Each writer's newest group, which shows whether a commit without an answer happened.

CREATE TABLE write_marks (
    writer uuid NOT NULL PRIMARY KEY,
    number bigint NOT NULL,
    marked_at timestamptz NOT NULL DEFAULT now()
);
