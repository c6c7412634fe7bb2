"""The version number, in one place. setup.py reads this file as text, so it imports nothing."""

__version__ = "0.1.0"
