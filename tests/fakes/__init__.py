"""Stand-ins of the vendors' GPU libraries for tests: see README.md. Not the real thing, and never shipped."""
