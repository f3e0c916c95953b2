"""Agents: a model, a protocol and tools."""

from __future__ import annotations

from callslip.agent._agent import Agent

__all__ = ["Agent"]
