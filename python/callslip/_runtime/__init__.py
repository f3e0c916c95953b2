"""The performance of runs: sessions, drivers, streams and child runs."""
