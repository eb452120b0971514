"""`python -P -m webdyno.cli`: for who has a Python with webdyno in it, but no PATH."""

from webdyno.cli import main

main()
