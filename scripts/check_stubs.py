#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Checks the types that users see: the stub names all that the module has, and a type checker accepts it."""

import ast
import importlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CORE = "carrier_storage._core"


def stub_names(nodes: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """Names that a body defines, each with its own body (empty for all but classes)."""
    names: dict[str, list[ast.stmt]] = {}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            names[node.name] = node.body
        elif isinstance(node, ast.FunctionDef):
            names[node.name] = []
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = []
        elif isinstance(node, ast.Assign):
            names.update({target.id: [] for target in node.targets if isinstance(target, ast.Name)})
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update({alias.asname or alias.name: [] for alias in node.names})
    return names


def missing(thing: object, nodes: list[ast.stmt], where: str) -> list[str]:
    known = stub_names(nodes)
    problems = []
    for name, value in vars(thing).items():
        if name.startswith("_"):
            continue
        if name not in known:
            problems.append(f"{where}.{name} is not in the stub")
        elif isinstance(value, type) and known[name]:
            problems += missing(value, known[name], f"{where}.{name}")
    return problems


def main() -> int:
    core = importlib.import_module(CORE)
    package = Path(str(core.__file__)).parent
    stub = package / "_core.pyi"
    wanted = [stub, package / "py.typed"]
    problems = [f"{path} is missing" for path in wanted if not path.exists()]
    if not problems:
        problems = missing(core, ast.parse(stub.read_text(encoding="utf-8")).body, CORE)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    # A copy outside .venv: type checkers pass over folders whose names begin with a dot.
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(package, Path(folder, package.name), ignore=shutil.ignore_patterns("__pycache__"))
        command = [
            shutil.which("basedpyright") or Path(sys.executable).with_name("basedpyright"),
            "--pythonpath",
            sys.executable,
            "--level",
            "error",
            package.name,
        ]
        return subprocess.run(command, cwd=folder, check=False).returncode


sys.exit(main())
