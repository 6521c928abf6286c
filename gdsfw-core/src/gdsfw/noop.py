"""A backend that moves nothing and measures the engine."""
