"""The log of a process: lines for people, or a JSON object (RFC 8259) a line, for programs.

docs/operations.md lists the fields of a JSON line. In JSON, the log also replaces what Python would print on standard
error: warnings, uncaught exceptions, and errors in threads and finalizers.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import orjson

from observability import tracing

log = logging.getLogger("latchkey")

CONSOLE, JSON = "console", "json"
_CONSOLE_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LogMessage:
    """A message with more than text. `str()` gives the line for people; in JSON, `words` is the message, and the other
    fields are separate."""

    __slots__ = ()

    def words(self) -> str:
        """The message."""
        return str(self)

    def put_fields(self, line: dict[str, Any]) -> None:
        """Adds the fields to a line of JSON."""


class ConsoleFormatter(logging.Formatter):
    """A line for people in the format of `logging`. Formats the time only once a second."""

    def __init__(self) -> None:
        super().__init__(_CONSOLE_LINE)
        self._second, self._stamp = -1, ""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """The local time."""
        second = int(record.created)
        if second != self._second:
            self._stamp = time.strftime(self.default_time_format, time.localtime(second))
            self._second = second
        return f"{self._stamp},{int(record.msecs):03d}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def __init__(self) -> None:
        super().__init__()
        self._second, self._stamp = -1, ""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without the line end."""
        message = record.msg
        line: dict[str, Any] = {
            "ts": self._time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if isinstance(message, LogMessage):
            line["message"] = message.words()
            message.put_fields(line)
        else:
            line["message"] = record.getMessage()
            request = tracing.current()
            if request is not None:
                tracing.put_known(line, request)
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        try:
            return orjson.dumps(line).decode()
        except TypeError:  # a lone surrogate, for example from a file name
            return json.dumps(line)

    def _time(self, created: float) -> str:
        """The time in UTC with milliseconds (RFC 3339)."""
        ms = int(created * 1000)
        second = ms // 1000
        if second != self._second:
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = second
        return f"{self._stamp}.{ms % 1000:03d}Z"


_handler: logging.StreamHandler[Any] | None = None
_form = CONSOLE


def configure(level: str, form: str) -> None:
    """Logs lines of at least this level to standard error, in this format. May be called again."""
    global _handler, _form
    root = logging.getLogger()
    if _handler is None:
        _handler = logging.StreamHandler(sys.stderr)
        root.addHandler(_handler)
        # Don't collect what no line shows: thread, process, task, and the place in the code (`_srcfile`: see the manual
        # of logging).
        logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
        if sys.version_info >= (3, 12):
            logging.logAsyncioTasks = False
        logging._srcfile = None
    _form = form
    _handler.setFormatter(JsonFormatter() if form == JSON else ConsoleFormatter())
    root.setLevel(level.upper())
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    logging.captureWarnings(form == JSON)
    if form == JSON:
        sys.excepthook, threading.excepthook, sys.unraisablehook = _uncaught, _uncaught_in_thread, _unraisable
    else:
        sys.excepthook, threading.excepthook = sys.__excepthook__, threading.__excepthook__
        sys.unraisablehook = sys.__unraisablehook__


def complain(error: object) -> None:
    """Logs why the process ends."""
    if _form == JSON:
        log.critical("%s", error)
    else:
        print(f"latchkey: {error}", file=sys.stderr)


def wanted(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """The log format in the flags or the environment, for errors before the settings are read. Skips the configuration
    file, which may itself be the error."""
    choice = environ.get("LATCHKEY_LOG_FORMAT", "")
    for number, word in enumerate(argv):
        if word == "--log-format":
            choice = argv[number + 1] if number + 1 < len(argv) else ""
        elif word.startswith("--log-format="):
            choice = word.partition("=")[2]
    return JSON if choice.lower() == JSON else CONSOLE


class Listens(LogMessage):
    """The one line on standard output: the server listens."""

    def __init__(self, url: str, more: str = "") -> None:
        self.url, self._more = url, more

    def __str__(self) -> str:
        words = self.words()
        return f"{words}\n{self._more}" if self._more else words

    def words(self) -> str:
        """The message."""
        return f"Latchkey listening on {self.url}"

    def put_fields(self, line: dict[str, Any]) -> None:
        """The address."""
        line["url"] = self.url


def announce(message: Listens) -> None:
    """Prints that the server listens, in one write, so that whoever waits for the line gets all of it."""
    line = str(message)
    if _form == JSON:
        line = JsonFormatter().format(logging.LogRecord(log.name, logging.INFO, __file__, 0, message, (), None))
    print(line, flush=True)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        log.critical("uncaught exception", exc_info=(kind, error, trace))


def _uncaught_in_thread(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
        log.error("uncaught exception in a thread", exc_info=failed.exc_value)


def _unraisable(failed: Any) -> None:  # sys.UnraisableHookArgs, which exists only for type checkers
    log.error("%s", failed.err_msg or "unraisable exception", exc_info=failed.exc_value)
