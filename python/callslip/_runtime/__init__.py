"""What takes runs to their end: the session of a run, its drivers, and the runs below it."""
