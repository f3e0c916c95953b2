"""The threads and the private event loop, with bounds and time limits for work in them."""
