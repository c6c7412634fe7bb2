"""The mirror of a palace's vectors in Chroma: kept in step with SQLite, never trusted unseen, made anew at any time."""

from .mirror import Mirror

__all__ = ["Mirror"]
