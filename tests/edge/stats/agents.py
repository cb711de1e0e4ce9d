"""User-Agents: of browsers that people use, and of programs that the package does not list."""

BROWSERS = ()
