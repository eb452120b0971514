"""Intervals, tests, change points: functions of numbers, each with its source.

How the interval of a ratio of two variants is made of them stands in `comparison/ratio.py`.
"""
