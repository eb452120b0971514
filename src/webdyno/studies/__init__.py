"""Studies that others published: their claims, judged from runs that repeat them."""
