"""Intervals, tests, change points: functions of numbers, each with its source."""
