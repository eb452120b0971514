"""Opens a testbed with a link, prints the processes behind it, and ends: to test what is left.

Its argument says how: `end`, `error`, or `kill`, which waits for being killed.
"""

import sys
import time

import psutil

from webdyno.core.testbed import TestbedSettings
from webdyno.host.netns import NetnsTestbed
from webdyno.load.engine import find_loadgen

if __name__ == "__main__":
    settings = TestbedSettings(kind="netns", link=1e8, delay=0.01)
    with NetnsTestbed(settings, find_loadgen()):
        behind = psutil.Process().children(recursive=True)
        print(*(process.pid for process in behind), flush=True)  # noqa: T201
        if sys.argv[1] == "error":
            sys.exit("an error on purpose")
        if sys.argv[1] == "kill":
            time.sleep(60)
