"""callslip beside its peers: `make compare` measures all of them and writes docs/comparison.md."""
