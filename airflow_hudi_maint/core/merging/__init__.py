"""Merging the small files of plain directories by the embedded engine: whole files in, one file out."""
