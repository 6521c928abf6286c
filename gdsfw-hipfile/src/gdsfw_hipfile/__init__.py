"""gdsfw backend."""
