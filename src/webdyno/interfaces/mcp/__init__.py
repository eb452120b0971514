"""webdyno as tools for agents, by the Model Context Protocol (https://modelcontextprotocol.io)."""
