"""Building, checking and trying what a release uploads: `make wheels`, `make rehearse`."""
