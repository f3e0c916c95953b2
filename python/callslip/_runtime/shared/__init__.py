"""Runs of a shared store: children and calls in other processes, and messages from there."""
