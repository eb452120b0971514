"""A league: many stacks ranked at many tasks, in as many sittings as that takes.

A task is a site under a load. Stacks are measured by the ordinary ranking, about ten at a time; two
of each ten were in an earlier run of the same task, and join the runs. `records.py` reads what is
there, `planning.py` says what is missing, `measuring.py` measures it, `joined.py` makes one ranking
of several runs, `tables.py` the figures of pages, `pages.py` and its templates the pages.
"""
