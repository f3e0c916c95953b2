"""Spans and metrics, kept in memory."""

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from callslip import otel


class Recorded:
    """What OpenTelemetry's SDK has received."""

    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def instrument(self, **options):
        otel.instrument(tracer_provider=self.tracers, meter_provider=self.meters, **options)

    @property
    def spans(self):
        return sorted(self.exporter.get_finished_spans(), key=lambda one: one.start_time)

    def named(self, name):
        (found,) = (one for one in self.spans if one.name == name)
        return found

    def tree(self):
        """Each span's name with that of its parent."""
        names = {one.context.span_id: one.name for one in self.spans}
        return [
            (one.name, None if one.parent is None else names.get(one.parent.span_id, "outside"))
            for one in self.spans
        ]

    def points(self, name):
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]
