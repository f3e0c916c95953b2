"""Clients that people have, through the gateway, beside an agent of callslip on the same model."""
