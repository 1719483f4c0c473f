"""Pure functions from values to plans."""
