"""Documents, and how they are drawn: terminal, Markdown, page, pictures. They know no run."""
