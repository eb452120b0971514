"""The words of webdyno as types. This package knows no other part of webdyno."""
