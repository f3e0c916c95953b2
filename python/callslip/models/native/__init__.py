"""Requests with tools, and replies with tool calls, a file for each service interface."""
