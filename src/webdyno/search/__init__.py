"""Searches inside a block: what to try next, from what was tried so far.

Pure functions: nothing here touches a process or a clock.
"""

from webdyno.search.capacity import FIRST_SHARE, Ask, next_trial

__all__ = ["FIRST_SHARE", "Ask", "next_trial"]
