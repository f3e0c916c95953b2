"""The metrics of runs."""

from __future__ import annotations

from typing import Any

from callslip.otel import _names as names

__all__ = ["Meters"]

# The SDK's own bounds are meant for milliseconds.
_SECONDS = [0.01 * 2**power for power in range(14)]
_FIRST_CHUNK = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0]
_FIRST_CHUNK += [7.5, 10.0]
_LONG = [0.1 * 2**power for power in range(16)]
_BY_PEOPLE = [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0, 604_800.0]


class Meters:
    """The instruments of one meter.

    Args:
        meter: The meter of OpenTelemetry.
    """

    def __init__(self, meter: Any) -> None:
        self.inference = _histogram(meter, names.INFERENCE_DURATION, _SECONDS)
        self.first_chunk = _histogram(meter, names.INFERENCE_FIRST_CHUNK, _FIRST_CHUNK)
        self.input_tokens = meter.create_counter(names.INFERENCE_INPUT_TOKENS, unit="{token}")
        self.output_tokens = meter.create_counter(names.INFERENCE_OUTPUT_TOKENS, unit="{token}")
        self.tool = _histogram(meter, names.TOOL_DURATION, _SECONDS)
        self.agent = _histogram(meter, names.AGENT_DURATION, _LONG)
        self.violations = meter.create_counter(names.VIOLATIONS, unit="{violation}")
        self.repairs = meter.create_counter(names.REPAIRS, unit="{repair}")
        self.approval = _histogram(meter, names.APPROVAL_WAIT, _BY_PEOPLE)


def _histogram(meter: Any, name: str, bounds: list[float]) -> Any:
    return meter.create_histogram(name, unit="s", explicit_bucket_boundaries_advisory=bounds)
