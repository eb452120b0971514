"""What people see of a run: pure functions of its head, records and judgement."""
