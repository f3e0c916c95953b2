"""A module for each client, as its documentation shows. `answer` works on one task."""
