"""How values without an origin are found, refused and asked about."""
