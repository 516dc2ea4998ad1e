# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Fixtures of the command line's tests."""

import pytest

pytest.importorskip("numpy", reason="the command line needs NumPy")
pytest.importorskip("rich", reason="the command line needs rich")


@pytest.fixture
def temp(tmp_path):
    """An empty directory for session directories, beside the files of the test."""
    directory = tmp_path / "temp"
    directory.mkdir()
    return directory
