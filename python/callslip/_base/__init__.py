"""Small parts that every other package may use: options, JSON, labels, usage, logging."""
