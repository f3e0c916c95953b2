"""The desk of a shop."""
