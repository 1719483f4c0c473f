"""Loads the Hypothesis profile."""

from __future__ import annotations

import tests.property.profile  # noqa: F401 loading is its effect
