"""Task groups of the provider."""
