"""How webdyno is asked: command line, Python, tools for agents, a local page."""
