"""The metrics of runs."""

from __future__ import annotations

from typing import Any

from callslip.otel import _names as names

__all__ = ["Meters"]


class Meters:
    """The instruments of one meter.

    Args:
        meter: The meter of OpenTelemetry.
    """

    def __init__(self, meter: Any) -> None:
        seconds, tokens = {"unit": "s"}, {"unit": "{token}"}
        self.inference = meter.create_histogram(names.INFERENCE_DURATION, **seconds)
        self.first_chunk = meter.create_histogram(names.INFERENCE_FIRST_CHUNK, **seconds)
        self.input_tokens = meter.create_histogram(names.INFERENCE_INPUT_TOKENS, **tokens)
        self.output_tokens = meter.create_histogram(names.INFERENCE_OUTPUT_TOKENS, **tokens)
        self.tool = meter.create_histogram(names.TOOL_DURATION, **seconds)
        self.agent = meter.create_histogram(names.AGENT_DURATION, **seconds)
        self.violations = meter.create_counter(names.VIOLATIONS, unit="{violation}")
        self.repairs = meter.create_counter(names.REPAIRS, unit="{repair}")
        self.approval = meter.create_histogram(names.APPROVAL_WAIT, **seconds)
