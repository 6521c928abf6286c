"""`python -m gdsfw` is `gdsfw`."""

from gdsfw.cli import main

main()
