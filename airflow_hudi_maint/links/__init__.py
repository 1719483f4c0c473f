"""Links of the provider."""
