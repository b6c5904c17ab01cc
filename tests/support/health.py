"""What a run of all tests says about itself: no test was skipped, and TensorFlow's starts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from forebay.mixture.kernels.library import machine_code, target_machine
from forebay.mixture.tensorflow_start import STARTS


def pytest_configure(config: pytest.Config) -> None:
    """Every process that starts TensorFlow below this one adds a byte to one file."""
    if STARTS not in os.environ:
        handle, name = tempfile.mkstemp(prefix="tensorflow-starts-")
        os.close(handle)
        os.environ[STARTS] = name
        config.add_cleanup(lambda: Path(os.environ.pop(STARTS)).unlink())
        machine_code(target_machine())  # compiled here, and by no test that has a deadline


def _skipped(reporter: pytest.TerminalReporter) -> list[pytest.TestReport]:
    return [report for report in reporter.stats.get("skipped", []) if report.outcome == "skipped"]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """A skipped test proves nothing: choose what to run with marks."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(reporter, pytest.TerminalReporter) and _skipped(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.config.option.collectonly:
        return
    starts = Path(os.environ[STARTS]).stat().st_size
    terminalreporter.section("health")
    terminalreporter.line(f"TensorFlow starts: {starts}")
    skipped = _skipped(terminalreporter)
    line = f"skipped tests: {len(skipped)}"
    terminalreporter.line(line + ", which counts as a failure" if skipped else line)
