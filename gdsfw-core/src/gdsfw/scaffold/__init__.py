"""The distribution that `gdsfw new-backend` writes: one template for each of its files.

A template is the file's text, in which @NAME@ is the backend's name (`my-disk`), @MODULE@ its module
(`gdsfw_my_disk`), @SYMBOL@ the first word of its C functions (`my_disk`) and @VERSION@ the version of gdsfw-core.
"""

from __future__ import annotations

from importlib.resources import files

#: Template by the place of the file; the place has the same marks.
_COMMON = {
    ".github/workflows/test.yaml": "common/workflow.yaml.in",
    ".gitignore": "common/gitignore.in",
    "examples/quickstart.yaml": "common/quickstart.yaml.in",
    "src/@MODULE@/py.typed": None,
    "tests/test_conformance.py": "common/test_conformance.py.in",
}
_PYTHON = {
    **_COMMON,
    "README.md": "python/README.md.in",
    "pyproject.toml": "python/pyproject.toml.in",
    "src/@MODULE@/__init__.py": "python/module.py.in",
}
_NATIVE = {
    **_COMMON,
    "README.md": "native/README.md.in",
    "native/@SYMBOL@.c": "native/library.c.in",
    "native/CMakeLists.txt": "native/CMakeLists.txt.in",
    "pyproject.toml": "native/pyproject.toml.in",
    "src/@MODULE@/__init__.py": "native/module.py.in",
}


def render(name: str, native: bool) -> dict[str, str]:
    """The text of each file of a new distribution, by its path in there.

    Args:
        name: the backend's name: lower-case letters, digits and single hyphens.
        native: a C library moves the bytes.
    """
    from gdsfw import __version__

    symbol = name.replace("-", "_")
    marks = {"@NAME@": name, "@MODULE@": f"gdsfw_{symbol}", "@SYMBOL@": symbol, "@VERSION@": __version__}
    templates = files(__name__)
    found = {}
    for place, template in sorted((_NATIVE if native else _PYTHON).items()):
        text = templates.joinpath(template).read_text(encoding="utf-8") if template else ""
        found[_filled(place, marks)] = _filled(text, marks)
    return found


def _filled(text: str, marks: dict[str, str]) -> str:
    for mark, value in marks.items():
        text = text.replace(mark, value)
    return text
