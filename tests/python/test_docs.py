# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""What the documentation shows runs as shown."""

import doctest
import re
import types
from pathlib import Path

import carrier_storage
import carrier_storage._core
import carrier_storage.io
import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
STAND_IN = Path(carrier_storage.__file__).with_name("libmetal_standin.so")
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[int, str]]:
    """The python blocks of a page, each with its line."""
    text = page.read_text(encoding="utf-8")
    found = [(text.count("\n", 0, m.start(2)) + 1, m) for m in BLOCK.finditer(text)]
    return [(number, m[2]) for number, m in found if m[1] in ("python", "py", "pycon")]


def test_the_pages_are_there():
    """README.md and the contract are part of the product."""
    assert (ROOT / "README.md").is_file() and (ROOT / "docs" / "contract.md").is_file()
    assert blocks(ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages(page, tmp_path, monkeypatch):
    """A page is one session: its python blocks run in order, prompts as doctests, the rest as programs."""
    if "libmetal_standin" in page.read_text(encoding="utf-8") and not STAND_IN.exists():
        pytest.skip(f"{page.name} is about a build with the Metal stand-in, which this one is not")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    names: dict = {"__name__": "__main__"}
    for number, code in blocks(page):
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), number - 1)
            runner = doctest.DocTestRunner(optionflags=FLAGS)
            said: list[str] = []
            runner.run(test, out=said.append, clear_globs=False)
            assert runner.failures == 0, "".join(said)
            names.update(test.globs)
        else:
            exec(compile("\n" * (number - 1) + code, str(page), "exec"), names)


def documented(*modules: types.ModuleType) -> dict[str, str]:
    """The examples of modules, classes, functions, methods and properties: each text once, by its name."""
    found: dict[str, str] = {}

    def look(name: str, thing: object) -> None:
        text = getattr(thing, "__doc__", None)
        own = not isinstance(thing, (types.ModuleType, str, int, float, tuple, list, carrier_storage.DType))
        if own and text and ">>>" in text and text not in found.values():
            found[name] = text

    for module in modules:
        if module.__doc__ and ">>>" in module.__doc__:
            found[module.__name__] = module.__doc__
        for name, value in vars(module).items():
            look(name, value)
            if isinstance(value, type):
                for method, function in vars(value).items():
                    look(f"{name}.{method}", function)
    return found


DOCSTRINGS = documented(carrier_storage, carrier_storage._core, carrier_storage.io)


def test_there_are_examples():
    """The installed package shows its use."""
    assert len(DOCSTRINGS) > 20


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_docstrings(name):
    """The examples in the docstrings of the installed package."""
    test = doctest.DocTestParser().get_doctest(DOCSTRINGS[name], {}, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
