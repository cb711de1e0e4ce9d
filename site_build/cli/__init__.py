"""The commands of the site build, one module each: their options, and what they print."""
