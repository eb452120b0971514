"""Searches: what to try next, from what was tried so far.

Pure functions: nothing here touches a process or a clock.
"""
