"""The threads and the private event loop, and what bounds and times the work in them."""
