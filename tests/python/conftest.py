# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Fixtures of the Python tests. Kinds and their factories are in kinds.py."""

import gc
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is no test's business: machines are busy, and a sanitizer slows everything down.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture
def session(monkeypatch):
    """An empty temporary directory for child processes, short as sockets want it: what they leave there can be seen."""
    with tempfile.TemporaryDirectory(prefix="cs", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


@pytest.fixture
def collected():
    """Collects garbage before and after, for tests that look at what is alive."""
    gc.collect()
    yield
    gc.collect()


def pytest_configure():
    """A shell that runs the tests in the background has them ignore Ctrl-C, and so would their child processes."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """Thousands of collected tests are no garbage: a collection inside a test need not look at them."""
    gc.collect()
    gc.freeze()
