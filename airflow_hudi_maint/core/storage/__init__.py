"""Everything that touches storage, through one fsspec seam."""
