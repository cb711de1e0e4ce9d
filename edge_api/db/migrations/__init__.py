"""The past of the schema: literal steps, only ever appended to.

A step is never edited and never derived from today's tables, for files out there have seen it; the
translation for PostgreSQL in `step.py` is as fixed. The number of steps that a store has seen is
its schema version.
"""

from edge_api.db.migrations import step_1, step_2, step_3, step_4

HISTORY = (step_1.STEP, step_2.STEP, step_3.STEP, step_4.STEP)
"""Every step, oldest first."""
