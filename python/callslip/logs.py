"""The log `callslip.run` for machines."""

from __future__ import annotations

import json
import logging

__all__ = ["JSONFormatter"]


class JSONFormatter(logging.Formatter):
    """Formats a record as one line of JSON, with the fields that callslip adds to its records.

    The keys are `time` (Unix seconds), `level`, `logger`, `message`, `callslip` (the fields, for
    records of `callslip.run`) and `exception` (for records that have one).
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line."""
        line = {
            "time": record.created,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if "callslip" in record.__dict__:
            line["callslip"] = record.__dict__["callslip"]
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
