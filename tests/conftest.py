"""For all tests."""

import signal

# A shell's background jobs ignore Ctrl-C, and so would every program that they start; the tests
# that interrupt webdyno would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
