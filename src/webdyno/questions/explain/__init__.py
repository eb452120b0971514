"""Why systems are as fast as they are: each is measured again with less of one thing."""
