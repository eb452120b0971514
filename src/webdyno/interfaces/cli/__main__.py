"""`python -P -m webdyno.interfaces.cli`: for who has a Python with webdyno in it, but no PATH."""

from webdyno.interfaces.cli import main

main()
