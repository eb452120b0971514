"""`conf:FILE`: users' own configurations of web servers, moved to where a run can start them."""
