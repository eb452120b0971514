"""A local page: the runs of a folder, live, compared, exported, begun."""
