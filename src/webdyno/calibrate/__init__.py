"""Measures what this machine's client can do, against a server that does nothing."""

from webdyno.calibrate.store import load_calibration, save_calibration

__all__ = ["load_calibration", "save_calibration"]
