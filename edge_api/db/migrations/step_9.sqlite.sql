-- Nothing: SQLite says of each commit whether it happened, so its writers leave no marks.

SELECT 1;
