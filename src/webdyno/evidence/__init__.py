"""What is on record of a point, as figures by round: pure functions of records."""
