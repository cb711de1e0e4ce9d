"""The administrative tables in PostgREST's dialect; privacy and retention of their rows."""
