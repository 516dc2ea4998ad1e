# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Fixtures of the Python tests. Kinds and their factories are in kinds.py."""

import gc
import signal

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is no test's business: machines are busy, and a sanitizer slows everything down.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture
def session(tmp_path, monkeypatch):
    """An empty temporary directory for child processes: what they leave there can be seen."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


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
