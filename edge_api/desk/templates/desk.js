// Comfort at the desk: everything works without it.
