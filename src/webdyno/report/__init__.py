"""What people see of a run: pure functions of its head, records and judgement.

Nothing here touches a process, and all but the writing of files is free of side effects.
"""

from webdyno.report.files import render_report
from webdyno.report.terminal import print_report

__all__ = ["print_report", "render_report"]
