"""A user's own systems as arms: commands, revisions, configurations, what runs already.

Whatever a user writes for an arm's `stack`, `cmd:./server` or `rev:main`, is turned into a part of
a catalogue before anything is measured. What comes after that needn't know of it.
"""
