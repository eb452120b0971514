"""Requests as people have them at hand: a curl command, a browser's HAR file, a request file."""

from webdyno.definitions.traffic.curl import read_curl
from webdyno.definitions.traffic.parts import open_secrets
from webdyno.definitions.traffic.request_file import read_har, read_request_file, read_workload_file

__all__ = ["open_secrets", "read_curl", "read_har", "read_request_file", "read_workload_file"]
