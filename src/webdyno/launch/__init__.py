"""What is done about a question from first to last: ask, measure, judge. All who ask call this.

The command line, scripts (`import webdyno`), the local page and hosts of a cluster differ in how
they talk to people, which is a `Caller`; what is done is the same. `python -m
webdyno.interfaces.python` does it in a process of its own.
"""
