"""What SQLite calls: the methods of a virtual table, for every connection that a function is registered on.

What makes it safe, read in SQLite's documentation of virtual tables and in CPython's source:
- every call takes the GIL and catches every exception; errors go to the statement, in words;
- what SQLite frees was allocated by SQLite, and tables are let go without Python, so that a connection may outlive it;
- SQLite holds numbers, not objects: a registration that is gone gives an error, never a stray pointer.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import itertools
import logging
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .library import CALLS, CONSTRAINT, ERROR, INTERRUPT, OK, OPERATORS, Cursor, Library, Module, Table
from .shapes import BOUNDS, Condition, Function, Offer, Rows, Shape, TableError, plan

MOMENT = 0.1
logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Registration:
    """A function on one connection. Keep it as long as the connection, best in a function registered on it."""

    function: Function


@dataclass
class _Reading:
    """What a cursor reads: `rows` of all that was `found`, the `place` among them, and what it was found for."""

    found: Rows
    rows: Sequence[Mapping[str, Any]]
    arguments: dict[str, Any]
    asked: str
    place: int = 0


class _Glue:
    """What SQLite calls for a shape: the methods after `register`, named as SQLite names them."""

    def __init__(self, library: Library, shape: Shape):
        self.library, self.shape = library, shape
        self.names, self.visible = [*shape.columns, *shape.parameters], len(shape.columns)
        self.numbers = itertools.count(1)
        self.registrations: weakref.WeakValueDictionary[int, Registration] = weakref.WeakValueDictionary()
        self.readings: dict[int, _Reading] = {}
        calls = {
            name: call(_guarded(getattr(self, name))) for name, call in CALLS.items() if hasattr(self, name)
        }
        free: Any = ctypes.cast(library.free, ctypes.c_void_p).value
        # The numbers that a table holds go with it; Python is not needed, and may be gone.
        calls["xDisconnect"] = CALLS["xDisconnect"](free)
        self.module = Module(**calls)
        self.at_end = {
            **dict.fromkeys(calls, library.threadsafe),
            "xDisconnect": library.free,
            "xClose": library.free,
        }
        # Never freed: a connection may be closed, and a thread may be in the middle of a call, after Python's own end.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object((self.module, calls)))
        atexit.register(self._end)

    def _end(self) -> None:
        """Keep SQLite from calling Python after its end: a daemon thread may still be reading.

        `sqlite3_threadsafe()` is never 0 where there are threads: as an answer an error, and for `xEof` the end.
        """
        for name, function in self.at_end.items():
            address: Any = ctypes.cast(function, ctypes.c_void_p).value
            setattr(self.module, name, CALLS[name](address))
        if self.readings:
            time.sleep(MOMENT)  # for the calls that have begun

    def register(self, connection: Any, function: Function) -> Registration:
        number, registration = next(self.numbers), Registration(function)
        code = self.library.create_module_v2(
            self.library.database(connection),
            self.shape.name.encode(),
            ctypes.addressof(self.module),
            number,
            None,
        )
        if code != OK:
            raise RuntimeError(f"SQLite refuses the table-valued function {self.shape.name}: code {code}")
        self.registrations[number] = registration
        return registration

    def xConnect(self, db: int, number: int, _count: int, _arguments: int, table: Any, _error: int) -> int:  # noqa: N802
        code = self.library.declare_vtab(db, self.shape.schema.encode())
        if code == OK:
            new = self.library.allocate(bytes(Table(registration=number)))
            table[0] = ctypes.cast(new, ctypes.POINTER(Table))
        return int(code)

    def xBestIndex(self, table: Any, info_pointer: Any) -> int:  # noqa: N802
        info, library = info_pointer[0], self.library
        offers = [self._offer(info_pointer, place) for place in range(info.constraint_count)]
        orders = [info.orders[place] for place in range(info.order_count)]
        chosen = plan(self.shape, offers, [(self._name(o.column), bool(o.descending)) for o in orders])
        if chosen is None:
            return CONSTRAINT
        for number, place in enumerate(chosen.taken, 1):
            is_parameter = offers[place].column in self.shape.parameters
            info.usage[place].place, info.usage[place].omit = number, int(is_parameter)
            if offers[place].operator == "in" and not is_parameter:
                library.vtab_in(info_pointer, place, 1)
        info.text, info.free_text = library.allocate(chosen.text.encode() + b"\0"), 1
        info.cost, info.rows, info.ordered = chosen.cost, chosen.rows, int(chosen.ordered)
        return OK

    def _offer(self, info: Any, place: int) -> Offer:
        constraint = info[0].constraints[place]
        operator = OPERATORS.get(constraint.operator, "other")
        if operator in BOUNDS:
            return Offer("", operator, bool(constraint.usable))
        if operator == "=" and self.library.takes_lists and self.library.vtab_in(info, place, -1):
            operator = "in"
        binary = self.library.vtab_collation(info, place) == b"BINARY"
        return Offer(self._name(constraint.column), operator, bool(constraint.usable), binary)

    def _name(self, column: int) -> str:
        return self.names[column] if column >= 0 else self.shape.key

    # Cursors come as addresses: that is all which most of the calls below need, and there are many.

    def xOpen(self, table: Any, cursor: Any) -> int:  # noqa: N802
        cursor[0] = self.library.allocate(bytes(Cursor()))
        return OK

    def xClose(self, cursor: int) -> int:  # noqa: N802
        self.readings.pop(cursor, None)
        self.library.free(cursor)
        return OK

    def xFilter(self, cursor: int, _number: int, text: bytes, count: int, values: Any) -> int:  # noqa: N802
        table = Cursor.from_address(cursor).table[0]
        before = self.readings.pop(cursor, None)
        try:
            parts = text.decode().split(", ") if count else []
            given = [self._condition(part, values[place]) for place, part in enumerate(parts)]
            self.readings[cursor] = self._read(table.registration, given, before)
        except BaseException as error:
            return self._failed(table, error)
        return OK

    def _condition(self, part: str, pointer: int) -> Condition:
        column, _, operator = part.partition(" ") if part not in BOUNDS else ("", "", part)
        read = self.library.values if operator == "in" else self.library.value
        return Condition(column, operator, read(pointer))

    def _read(self, registration: int, given: list[Condition], before: _Reading | None) -> _Reading:
        """Rows for what is given. The same again within a statement, as in a left join, is answered from before."""
        lookups = [value for column, operator, value in given if (column, operator) == (self.shape.key, "=")]
        asked = repr([each for each in given if each[:2] != (self.shape.key, "=")])
        if before is None or before.asked != asked:
            before = self._call(registration, given, asked)
        found = before.found.rows
        if lookups and isinstance(lookups[0], int):
            found = before.found.with_key(self.shape.key, lookups[0])
        elif lookups and lookups[0] is None:
            found = ()
        return _Reading(before.found, found, before.arguments, asked)

    def _call(self, registration: int, given: list[Condition], asked: str) -> _Reading:
        """Call the function, unless SQL's own rule for NULL says that no row can match."""
        arguments = dict.fromkeys(self.shape.parameters)
        arguments.update({column: value for column, _, value in given if column in arguments})
        if not any(column == self.shape.parameters[0] for column, _, _ in given):
            needed = self.shape.parameters[0]
            raise TableError(f"its argument {needed} is missing; write {self.shape.name}(:{needed})")
        bounds = {operator: value for _, operator, value in given if operator in BOUNDS}
        narrowing = [each for each in given if each.column in self.shape.columns]
        conditions = tuple(_without_null(each) for each in narrowing if each[:2] != (self.shape.key, "="))
        function = self.registrations.get(registration)
        if function is None:
            raise TableError("it has been taken away from this connection")
        possible = tuple(each for each in conditions if each is not None)
        if len(possible) < len(conditions):
            return _Reading(Rows(()), (), arguments, asked)
        found = function.function(arguments, possible, _limit(bounds))
        return _Reading(found, found.rows, arguments, asked)

    def _failed(self, table: Any, error: BaseException) -> int:
        """Tell the statement what is wrong; an interruption is SQLite's to tell."""
        if isinstance(error, KeyboardInterrupt) or (
            isinstance(error, self.library.sqlite3.Error) and "interrupted" in str(error)
        ):
            return INTERRUPT
        if not isinstance(error, TableError):
            logger.error("%s failed", self.shape.name, exc_info=error)
            error = TableError(f"{type(error).__name__}: {error}")
        if table.error:
            self.library.free(table.error)
        said = f"{self.shape.name}: {error}".encode("utf-8", "replace").replace(b"\0", b"")
        table.error = self.library.allocate(said + b"\0")
        return ERROR

    def xNext(self, cursor: int) -> int:  # noqa: N802
        self.readings[cursor].place += 1
        return OK

    def xEof(self, cursor: int) -> int:  # noqa: N802
        reading = self.readings.get(cursor)
        return int(reading is None or reading.place >= len(reading.rows))

    def xColumn(self, cursor: int, context: int, column: int) -> int:  # noqa: N802
        reading = self.readings[cursor]
        row = reading.rows[reading.place] if column < self.visible else reading.arguments
        self.library.result(context, row.get(self.names[column]))
        return OK

    def xRowid(self, cursor: int, rowid: Any) -> int:  # noqa: N802
        reading = self.readings[cursor]
        rowid[0] = reading.rows[reading.place][self.shape.key]
        return OK


def _guarded(method: Callable[..., int]) -> Callable[..., int]:
    """A method that never lets an exception into SQLite."""

    def call(*arguments: Any) -> int:
        try:
            return method(*arguments)
        except BaseException:
            return ERROR

    return call


def _without_null(condition: Condition) -> Condition | None:
    """A condition as SQL means it where NULL is involved: None when no row can match."""
    column, operator, value = condition
    if operator == "in":
        values = tuple(each for each in value if each is not None)
        return Condition(column, operator, values) if values else None
    return None if value is None and operator not in ("is", "is null") else condition


def _limit(bounds: Mapping[str, Any]) -> int | None:
    limit, offset = bounds.get("limit"), bounds.get("offset") or 0
    return (
        limit + max(offset, 0) if isinstance(limit, int) and isinstance(offset, int) and limit > 0 else None
    )


@functools.cache
def _glue(sqlite3: Any, shape: Shape) -> _Glue:
    return _Glue(library_of(sqlite3), shape)


@functools.cache
def library_of(sqlite3: Any) -> Library:
    """The library of a sqlite3 module, looked for once."""
    return Library(sqlite3)


def register(sqlite3: Any, connection: Any, shape: Shape, function: Function) -> Registration:
    """Register a function on a connection; what the package's own `register` promises."""
    return _glue(sqlite3, shape).register(connection, function)
