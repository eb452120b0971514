"""What can be asked, a folder each. Nothing else of webdyno imports them."""
