"""Logging: one line a record, as text or JSON, with the request's id."""

import json
import logging
import sys
import time

from edge_api.http.request import RequestIdFilter

_TEXT = "%(asctime)s %(levelname)-7s {}%(request_id)s %(name)s: %(message)s"


class JsonFormatter(logging.Formatter):
    """One JSON object a record, with the worker's number if there are several."""

    converter = staticmethod(time.gmtime)

    def __init__(self, worker: int | None = None) -> None:
        super().__init__()
        self._worker_fields = {} if worker is None else {"worker": worker}

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of JSON."""
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%SZ"),
            "level": record.levelname.lower(),
            **self._worker_fields,
            "request_id": getattr(record, "request_id", "-"),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logging(log_format: str, worker: int | None = None) -> None:
    """Send records to standard error as `text` or `json`, with the number of this `worker`."""
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        handler.setFormatter(JsonFormatter(worker))
    else:
        prefix = "" if worker is None else f"[{worker}] "
        formatter = logging.Formatter(_TEXT.format(prefix), "%Y-%m-%dT%H:%M:%SZ")
        formatter.converter = time.gmtime
        handler.setFormatter(formatter)
    handler.addFilter(RequestIdFilter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    access = logging.getLogger("edge_api.access")
    access.handlers, access.propagate = [logging.StreamHandler(sys.stdout)], False
