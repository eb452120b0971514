"""What people see of a run: pure functions of its head, records and judgement.

Nothing here touches a process, and all but the writing of files is free of side effects.
"""

from webdyno.report.files import render_report, render_sweep
from webdyno.report.sweep.terminal import print_sweep
from webdyno.report.terminal import print_report

__all__ = ["print_report", "print_sweep", "render_report", "render_sweep"]
