# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""The command line: `tier`, `doctor` and `sessions`.

It uses the public Python API like any other program. Each command loads what it needs when it is asked for, so `doctor`
and `sessions` run without NumPy and rich.
"""
