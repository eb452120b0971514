"""What is compared: stacks of the catalog (`catalog/`: data, no code), and users' own systems.

A stack names its services, each of which has a folder in `catalog/services/` with its command and
its configuration.

Whatever a user writes for a variant's `stack`, `cmd:./server` or `rev:main`, is turned into a part
of a catalogue before anything is measured. What comes after that needn't know of it.
"""
