"""Files on this machine: how they are opened safely, whose they are, and what their file system can do."""
