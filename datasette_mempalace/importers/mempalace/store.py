"""Writes imported rows and their vectors into a palace, a page a transaction; never touches what another origin filed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...drawers import batched
from ...embedding import unit_length
from ...palace import Palace
from ...schema import CLOSET_COLUMNS, DRAWER_COLUMNS
from ...vectors import Kind, as_blob, embedded_hash, is_vector_of
from .hnsw_files import Vector
from .records import Row
from .report import SHOWN, Tally

PAGE = 1_000
_COLUMNS: dict[Kind, tuple[str, ...]] = {"drawer": DRAWER_COLUMNS, "closet": CLOSET_COLUMNS}
_VECTOR = "insert into {kind}_vectors(id, vector, text_hash) values (?, ?, ?) on conflict(id) do nothing"


@dataclass
class Store:
    """Where the rows of one kind and origin go.

    Attributes:
        palace: the palace.
        kind: "drawer" or "closet".
        origin: the origin's id.
        tally: counts what is done.
    """

    palace: Palace
    kind: Kind
    origin: int
    tally: Tally

    def write(self, rows: Sequence[Row], vectors: Mapping[str, Vector]) -> None:
        """Write a page of rows with their vectors; rows that are here and equal are left alone.

        Args:
            rows: rows with every column of the table.
            vectors: stored vectors by the rows' own ids; some may be missing.
        """
        key = f"{self.kind}_id"
        with self.palace.writer() as connection:
            stored, owners = self._stored(connection, [row[key] for row in rows])
            ours, changed = [], []
            for row in rows:
                old = stored.get(row[key])
                if old is not None and owners.get(row[key]) != self.origin:
                    same = "the same" if old["text"] == row["text"] else "another text"
                    self.tally.set_aside[f"whose id something else has here already, with {same}"] += 1
                    continue
                ours.append(row)
                if old == row:
                    self.tally.unchanged += 1
                    continue
                changed.append(row)
                self.tally.added += old is None
                self.tally.updated += old is not None
            self._upsert(connection, changed)
            self._put_vectors(connection, ours, vectors)

    def remove(self, keys: Sequence[str]) -> int:
        """Delete rows of this origin; returns how many."""
        removed = 0
        for batch in batched(keys, PAGE):
            with self.palace.writer() as connection:
                removed += connection.execute(
                    f"delete from {self.kind}s where {self.kind}_id in (select value from json_each(?))",
                    [json.dumps(batch)],
                ).rowcount
        return removed

    def pages_of_keys(self) -> Iterable[list[str]]:
        """The ids of everything that this origin has here, a page at a time."""
        last = ""
        while True:
            with self.palace.reader() as connection:
                rows = connection.execute(
                    f"select {self.kind}_id from origin_{self.kind}s where origin = ? and {self.kind}_id > ?"
                    f" order by {self.kind}_id limit ?",
                    [self.origin, last, PAGE],
                ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            yield [key for (key,) in rows]

    def _stored(self, connection: Any, keys: Sequence[str]) -> tuple[dict[str, Row], dict[str, int]]:
        columns, key, wanted = _COLUMNS[self.kind], f"{self.kind}_id", json.dumps(keys)
        rows = connection.execute(
            f"select {', '.join(columns)} from {self.kind}s where {key} in (select value from json_each(?))",
            [wanted],
        )
        stored = {row[0]: dict(zip(columns, row, strict=True)) for row in rows}
        owners = connection.execute(
            f"select {key}, origin from origin_{self.kind}s where {key} in (select value from json_each(?))",
            [wanted],
        )
        return stored, dict(owners.fetchall())

    def _upsert(self, connection: Any, rows: Sequence[Row]) -> None:
        columns, key = _COLUMNS[self.kind], f"{self.kind}_id"
        marks = ", ".join(f":{column}" for column in columns)
        changes = ", ".join(f"{column} = excluded.{column}" for column in columns if column != key)
        connection.executemany(
            f"insert into {self.kind}s ({', '.join(columns)}) values ({marks}) on conflict({key}) do update set {changes}",
            rows,
        )
        connection.executemany(
            f"insert into origin_{self.kind}s({key}, origin) values (?, ?) on conflict do nothing",
            [(row[key], self.origin) for row in rows],
        )

    def _put_vectors(self, connection: Any, rows: Sequence[Row], vectors: Mapping[str, Vector]) -> None:
        key = f"{self.kind}_id"
        found = connection.execute(
            f"select t.{key}, t.id, v.id is not null from {self.kind}s t left join {self.kind}_vectors v on v.id = t.id"
            f" where t.{key} in (select value from json_each(?))",
            [json.dumps([row[key] for row in rows])],
        ).fetchall()
        ids = {name: row_id for name, row_id, has_vector in found if not has_vector}
        wanting = [row for row in rows if row[key] in ids]
        usable = self._usable([row for row in wanting if row[key] in vectors], vectors)
        connection.executemany(
            _VECTOR.format(kind=self.kind),
            [
                (ids[row[key]], usable[row[key]], embedded_hash(self.kind, row["text"]))
                for row in wanting
                if row[key] in usable
            ],
        )
        without = [row[key] for row in wanting if row[key] not in usable]
        self.tally.vectors += len(usable)
        self.tally.without_vector += len(without)
        self.tally.examples += without[: max(0, SHOWN - len(self.tally.examples))]

    def _usable(self, rows: Sequence[Row], vectors: Mapping[str, Vector]) -> dict[str, bytes]:
        """The vectors of rows as they are stored here, by the rows' own ids, but for those that no model can have made."""
        if not rows:
            return {}
        key = f"{self.kind}_id"
        # Other metrics than cosine store vectors of any length; here they have length one.
        unit = unit_length(np.stack([vectors[row[key]] for row in rows]))
        found = {row[key]: as_blob(vector) for row, vector in zip(rows, unit, strict=True)}
        dimension = unit.shape[1]
        return {
            row[key]: found[row[key]]
            for row in rows
            if is_vector_of(self.kind, row["text"], found[row[key]], dimension)
        }
