"""A user's own systems as variants: commands, revisions, configurations, what runs already.

Whatever a user writes for a variant's `stack`, `cmd:./server` or `rev:main`, is turned into a part
of a catalogue before anything is measured. What comes after that needn't know of it.
"""
