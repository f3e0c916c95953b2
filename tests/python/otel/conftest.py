"""What tests of telemetry share."""

import pytest


@pytest.fixture
def recorded():
    """What OpenTelemetry's SDK receives in the test."""
    from callslip import otel
    from recorded_spans import Recorded

    one = Recorded()
    yield one
    otel.uninstrument()
    one.tracers.shutdown()
    one.meters.shutdown()
