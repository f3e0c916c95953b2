"""What the installed package says of itself."""

from __future__ import annotations

import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest

import callslip

ROOT = Path(__file__).parents[3]


def test_versions_agree():
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    assert callslip.__version__ == metadata.version("callslip") == cargo["package"]["version"]


def test_the_changelog_knows_the_version():
    assert f"## [{callslip.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_metadata_names_license_and_python():
    about = metadata.metadata("callslip")
    assert about["License-Expression"] == "MIT OR Apache-2.0"
    assert about["Requires-Python"] == ">=3.11"
    assert {"local", "openai", "anthropic"} <= set(about.get_all("Provides-Extra") or [])


def test_type_checkers_find_their_files():
    package = resources.files("callslip")
    assert package.joinpath("py.typed").is_file()
    assert package.joinpath("_core.pyi").is_file()


@pytest.mark.parametrize("name", ["rows.css", "page.css", "output.css"])
def test_the_styles_are_in_the_package_and_load_nothing(name):
    style = resources.files("callslip.look").joinpath(name).read_text("utf-8")
    assert "var(--" in style
    assert "url(" not in style
    assert "@import" not in style


def test_all_that_is_exported_is_there():
    assert sorted(callslip.__all__) == callslip.__all__
    assert [name for name in callslip.__all__ if not hasattr(callslip, name)] == []
