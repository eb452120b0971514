"""Renders, starts, waits for and stops stacks.

`starting.py` lays out what a stack needs, `running.py` starts its services in order and asks the
first one, `service.py` is one service, `ready.py` the waiting for its answer. How long that may
take is `READY_WITHIN_S` of `core/service.py`.
"""
