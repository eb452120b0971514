"""Other machines: an agent of webdyno on each host, what carries orders to it, and fleets."""
