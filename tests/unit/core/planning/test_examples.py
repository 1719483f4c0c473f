"""The examples in the docstrings of the planners and of the model hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from airflow_hudi_maint.core import model, planning

MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (model, planning)
    for module in pkgutil.iter_modules(package.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    """What a docstring shows is what happens."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0
