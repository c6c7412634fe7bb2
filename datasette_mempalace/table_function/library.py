"""SQLite's C interface, as far as virtual tables need it, in the library that a sqlite3 module uses."""

from __future__ import annotations

import ctypes
import importlib
import json
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_int64, c_ubyte, c_uint64, c_void_p
from typing import Any

OK, ERROR, INTERRUPT, CONSTRAINT = 0, 1, 9, 19
INTEGER, FLOAT, TEXT, NULL = 1, 2, 3, 5
OPERATORS = {
    2: "=", 4: ">", 8: "<=", 16: "<", 32: ">=", 71: "is null", 72: "is", 73: "limit", 74: "offset",
}  # fmt: skip


class Constraint(Structure):
    _fields_ = [("column", c_int), ("operator", c_ubyte), ("usable", c_ubyte), ("offset", c_int)]


class OrderBy(Structure):
    _fields_ = [("column", c_int), ("descending", c_ubyte)]


class Usage(Structure):
    _fields_ = [("place", c_int), ("omit", c_ubyte)]


class IndexInfo(Structure):
    _fields_ = [
        ("constraint_count", c_int), ("constraints", POINTER(Constraint)),
        ("order_count", c_int), ("orders", POINTER(OrderBy)), ("usage", POINTER(Usage)),
        ("number", c_int), ("text", c_void_p), ("free_text", c_int), ("ordered", c_int),
        ("cost", c_double), ("rows", c_int64), ("flags", c_int), ("columns_used", c_uint64),
    ]  # fmt: skip


class Table(Structure):
    _fields_ = [("module", c_void_p), ("references", c_int), ("error", c_void_p), ("registration", c_int64)]


class Cursor(Structure):
    _fields_ = [("table", POINTER(Table))]


_P, _TABLE, _INFO = c_void_p, POINTER(Table), POINTER(IndexInfo)
_TYPES: dict[str, tuple[Any, ...]] = {
    "xCreate": (_P, _P, c_int, _P, _P, _P),
    "xConnect": (_P, _P, c_int, _P, POINTER(_TABLE), _P),
    "xBestIndex": (_TABLE, _INFO),
    "xDisconnect": (_P,),
    "xDestroy": (_P,),
    "xOpen": (_TABLE, POINTER(_P)),
    "xClose": (_P,),
    "xFilter": (_P, c_int, c_char_p, c_int, POINTER(_P)),
    "xNext": (_P,),
    "xEof": (_P,),
    "xColumn": (_P, _P, c_int),
    "xRowid": (_P, POINTER(c_int64)),
}
CALLS: dict[str, Any] = {name: ctypes.CFUNCTYPE(c_int, *types) for name, types in _TYPES.items()}


class Module(Structure):
    _fields_ = [("version", c_int), *CALLS.items(), *((f"unused_{place}", c_void_p) for place in range(13))]


_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "sourceid": (c_char_p,), "threadsafe": (c_int,), "malloc64": (_P, c_uint64), "free": (None, _P), "vfs_find": (_P, c_char_p),
    "file_control": (c_int, _P, c_char_p, c_int, _P), "create_module_v2": (c_int, _P, c_char_p, _P, _P, _P),
    "declare_vtab": (c_int, _P, c_char_p), "vtab_collation": (c_char_p, _INFO, c_int),
    "value_type": (c_int, _P), "value_int64": (c_int64, _P), "value_double": (c_double, _P),
    "value_blob": (_P, _P), "value_text": (_P, _P), "value_bytes": (c_int, _P), "result_null": (None, _P),
    "result_int64": (None, _P, c_int64), "result_double": (None, _P, c_double),
    "result_text": (None, _P, c_char_p, c_int, _P), "result_blob": (None, _P, c_char_p, c_int, _P),
}  # fmt: skip
_SINCE_3_38: dict[str, tuple[Any, ...]] = {
    "vtab_in": (c_int, _INFO, c_int, c_int), "vtab_in_first": (c_int, _P, POINTER(_P)),
    "vtab_in_next": (c_int, _P, POINTER(_P)),
}  # fmt: skip
_TRANSIENT = c_void_p(-1)  # SQLite copies what it is given
_FCNTL_VFS_POINTER = 27


class Library:
    """The SQLite library of a sqlite3 module, through ctypes.

    Args:
        sqlite3: the module: `sqlite3` or one like it, such as `pysqlite3`.
    Raises:
        OSError, AttributeError, RuntimeError: when it cannot be reached or is not the one that the module uses.
    """

    def __init__(self, sqlite3: Any):
        self.sqlite3 = sqlite3
        extension = importlib.import_module(
            "_sqlite3" if sqlite3.__name__ == "sqlite3" else f"{sqlite3.__name__}._sqlite3"
        )
        # PyDLL keeps the GIL in calls, most of which come from callbacks that hold it.
        self._handle = ctypes.PyDLL(getattr(extension, "__file__", None))
        for name, signature in _SIGNATURES.items():
            setattr(self, name, self._function(name, signature))
        self.takes_lists = hasattr(self._handle, "sqlite3_vtab_in")
        for name, signature in _SINCE_3_38.items() if self.takes_lists else ():
            setattr(self, name, self._function(name, signature))
        self.source: str = self.sourceid().decode()
        self._check_same()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"SQLite has no sqlite3_{name}")

    def _function(self, name: str, signature: tuple[Any, ...]) -> Any:
        function = getattr(self._handle, f"sqlite3_{name}")
        function.restype, function.argtypes = signature[0], signature[1:]
        return function

    def _check_same(self) -> None:
        """Two copies of one version differ in the addresses of what they hold, such as their file system layer."""
        connection = self.sqlite3.connect(":memory:")
        try:
            of_module = connection.execute("select sqlite_source_id()").fetchone()[0]
            if of_module != self.source:
                raise RuntimeError(f"it finds SQLite {self.source}, but the sqlite3 module uses {of_module}")
            layer = c_void_p()
            self.file_control(self.database(connection), b"main", _FCNTL_VFS_POINTER, ctypes.byref(layer))
            if not layer.value or layer.value != self.vfs_find(None):
                raise RuntimeError("it finds another copy of SQLite than the sqlite3 module uses")
        finally:
            connection.close()

    def database(self, connection: Any) -> int:
        """The `sqlite3 *` of a connection: the first field of its object, after the header of every object."""
        pointer = c_void_p.from_address(id(connection) + object.__basicsize__).value
        if not isinstance(connection, self.sqlite3.Connection) or not pointer:
            raise RuntimeError("it is no open connection")
        return pointer

    def allocate(self, content: bytes) -> int:
        """Memory that SQLite will free, filled."""
        pointer = self.malloc64(len(content))
        if not pointer:
            raise MemoryError
        ctypes.memmove(pointer, content, len(content))
        return int(pointer)

    def value(self, pointer: int) -> Any:
        """A value of SQLite's; a text that is not UTF-8 comes as bytes."""
        kind = self.value_type(pointer)
        if kind == INTEGER:
            return self.value_int64(pointer)
        if kind == FLOAT:
            return self.value_double(pointer)
        if kind == NULL:
            return None
        start = self.value_text(pointer) if kind == TEXT else self.value_blob(pointer)
        content = ctypes.string_at(start, self.value_bytes(pointer)) if start else b""
        try:
            return content.decode() if kind == TEXT else content
        except UnicodeDecodeError:
            return content

    def values(self, pointer: int) -> tuple[Any, ...]:
        """All values of a list after `in`."""
        found, item = [], c_void_p()
        code = self.vtab_in_first(pointer, ctypes.byref(item))
        while code == OK and item.value:
            found.append(self.value(item.value))
            code = self.vtab_in_next(pointer, ctypes.byref(item))
        return tuple(found)

    def result(self, context: int, value: Any) -> None:
        """Give SQLite the value of a column."""
        if isinstance(value, str):
            content = value.encode("utf-8", "replace")
            self.result_text(context, content, len(content), _TRANSIENT)
        elif value is None:
            self.result_null(context)
        elif isinstance(value, int) and -(2**63) <= value < 2**63:
            self.result_int64(context, value)
        elif isinstance(value, float):
            self.result_double(context, value)
        elif isinstance(value, bytes):
            self.result_blob(context, value, len(value), _TRANSIENT)
        else:
            self.result(context, json.dumps(value, ensure_ascii=False, default=str))
