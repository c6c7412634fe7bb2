"""What a date column of any text stands for, as SQL: the same in every statement, condition and index. Pure.

SQLite's date functions take the text "now" for the present. An index refuses what changes by itself, so that one such
date would break every write of its row, and a page would count it as today. No date begins with a letter.
"""

from __future__ import annotations


def moment_of(expression: str) -> str:
    """The moment of a column or another expression, "YYYY-MM-DD HH:MM:SS"; null where SQLite reads no date in it.

    An index serves only who asks for its expression to the letter.
    """
    return f"datetime({fixed(expression)})"


def day_of(expression: str) -> str:
    """The day of a column or another expression, "YYYY-MM-DD"; null where SQLite reads no date in it."""
    return f"date({fixed(expression)})"


def fixed(expression: str) -> str:
    """An expression where it begins as dates do, else null: what SQLite's date functions make of it never changes."""
    return f"case when {expression} glob '[-0-9]*' then {expression} end"
