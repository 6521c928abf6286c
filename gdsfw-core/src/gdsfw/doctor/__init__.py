"""Why direct GPU I/O is not happening, and what would mend it."""
