"""Views of traces."""
