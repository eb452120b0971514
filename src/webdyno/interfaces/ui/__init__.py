"""A local page: the runs of a folder, live while they go on, compared, exported, begun."""
