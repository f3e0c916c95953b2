"""Scripts that call tools: the interface of their interpreters, and the sessions that wait."""
