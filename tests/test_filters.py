"""Column filters in Datasette's syntax: every operator, metadata keys, and names that must not reach a statement."""

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import find, make_palace
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer
from datasette_mempalace.errors import BadParameter
from datasette_mempalace.filters import COLUMNS, OPERATORS, is_filter, make_filter
from datasette_mempalace.request import parse_request, request_parameters

DRAWERS = [
    Drawer("a note on foxes", drawer_id="a", wing="w", hall="facts", added_by="anna", filed_at="2026-03-01T10:00:00",
           authored_at="2020-01-01", chunk_index=0, metadata={"agent": "x", "n": 5, "deep": {"k.1": 1, "k": "v"}}),
    Drawer("a note on 50% of whales", drawer_id="b", wing="w", hall="plans", added_by="bob", filed_at="2026-04-01",
           content_date="2021-05-05", chunk_index=10, metadata={"agent": "y", "n": "5", 'od"d': "z"}),
    Drawer("a note on lizards", drawer_id="c", wing="v", hall="", added_by=None, filed_at="2026-05-01", chunk_index=2),
]  # fmt: skip


@pytest.fixture(scope="module")
def palace(tmp_path_factory):
    with make_palace(tmp_path_factory.mktemp("filters") / "p.db", DRAWERS) as palace:
        yield palace


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"added_by": "anna"}, "a"),
        ({"added_by__exact": "anna"}, "a"),
        ({"added_by__not": "anna"}, "b"),
        ({"added_by__isnull": 1}, "c"),
        ({"added_by__isnull": "0"}, "abc"),
        ({"added_by__notnull": "1"}, "ab"),
        ({"hall__isblank": 1}, "c"),
        ({"hall__notblank": 1}, "ab"),
        ({"hall__in": "facts,plans"}, "ab"),
        ({"hall__in": '["facts"]'}, "a"),
        ({"hall__notin": "facts, plans"}, "c"),
        ({"text__contains": "50%"}, "b"),
        ({"text__contains": "o_e"}, ""),
        ({"text__notcontains": "fox"}, "bc"),
        ({"text__startswith": "a note on l"}, "c"),
        ({"text__endswith": "foxes"}, "a"),
        ({"text__like": "%lizards"}, "c"),
        ({"text__notlike": "%lizards"}, "ab"),
        ({"text__glob": "*fox*"}, "a"),
        ({"chunk_index__gt": "2"}, "b"),
        ({"chunk_index__gte": 2}, "bc"),
        ({"chunk_index__lt": "10"}, "ac"),
        ({"chunk_index__lte": "0"}, "a"),
        ({"chunk_index__in": "0,10"}, "ab"),
        ({"id__in": "1,3"}, "ac"),
        ({"filed_at__gte": "2026-04"}, "bc"),
        ({"filed_at__date": "2026-03-01"}, "a"),
        ({"metadata.agent": "x"}, "a"),
        ({"metadata.agent__in": "x,y"}, "ab"),
        ({"metadata.agent__isnull": 1}, "c"),
        ({"metadata.n": "5"}, "ab"),
        ({"metadata.n__gt": "4", "metadata.n__lt": "6"}, "a"),
        ({"metadata.deep.k": "v"}, "a"),
        ({'metadata.od"d': "z"}, "b"),
        ({"metadata.none": "x"}, ""),
        ({"hall": "facts", "added_by": "bob"}, ""),
        ({"hall": ["facts", "plans"]}, ""),
        ({"hall": "", "added_by__exact": None}, "abc"),
        ({"since": "2019-01-01", "before": "2021-01-01", "date_column": "authored_at"}, "a"),
        ({"since": "2021-01-01", "date_column": "content_date"}, "b"),
    ],
    ids=str,
)
def test_each_operator_narrows_as_on_a_table_page(palace, parameters, expected):
    for strategy in ("union", "vector"):
        answer = find(palace, "note", candidate_strategy=strategy, **parameters)
        assert "".join(sorted(hit["drawer_id"] for hit in answer["results"])) == expected
        assert answer["in_scope"] == len(expected)


def test_the_answer_names_its_filters(palace):
    filters = find(palace, "note", added_by="anna", date_column="authored_at")["filters"]
    assert filters["added_by__exact"] == ["anna"]
    assert filters["date_column"] == "authored_at"


def test_filters_go_into_a_url_and_out_again():
    settings = Settings()
    request = parse_request({"q": "x", "hall__in": "a,b", "metadata.k__gt": "3", "date_column": "content_date", "since": "2026-01-01"}, settings)  # fmt: skip
    assert parse_request(dict(request_parameters(request, settings)), settings) == request


def test_case_39_no_name_of_a_parameter_reaches_a_statement(palace):
    for name in (
        "x]) or 1=1--__exact",
        "wing) or 1=1--__contains",
        "drawers.text__exact",
        "rowid__gt",
        "a__in",
    ):
        with pytest.raises(BadParameter) as caught:
            find(palace, "note", **{name: "1"})
        assert "the column of a filter must be one of id, drawer_id, wing" in caught.value.message
    assert find(palace, "note", **{"x]) or 1=1--": "1", "_sort": "drop table"})["in_scope"] == 3


def test_there_is_a_greatest_number_of_filters():
    with pytest.raises(BadParameter, match="at most 20"):
        parse_request({"q": "x", "text__contains": [str(n) for n in range(21)]}, Settings())


@given(st.sampled_from([*COLUMNS, "metadata.a", "metadata.\"'.b"]), st.sampled_from(sorted(OPERATORS)), st.text(st.characters(codec="utf-8"), max_size=12))  # fmt: skip
def test_any_value_makes_a_statement_that_sqlite_takes(column, operator, value):
    name = f"{column}__{operator}"
    assert is_filter(name)
    made = make_filter(name, value)
    if made is None:
        return
    connection = sqlite3.connect(":memory:")
    connection.execute(f"create table drawers ({', '.join(COLUMNS)}, metadata)")
    connection.execute("insert into drawers(id, metadata) values (1, '{}'), (2, 'no json'), (3, null)")
    where, parameters = made.where(0)
    connection.execute(f"select * from drawers where {where}", parameters).fetchall()


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1, max_size=8),
        min_size=1,
        max_size=3,
    )
)
def test_any_key_of_metadata_can_be_named(keys):
    if keys[-1].endswith(tuple(f"__{operator}" for operator in OPERATORS)):
        return
    metadata = "found"
    for key in reversed(keys):
        metadata = {key: metadata}
    connection = sqlite3.connect(":memory:")
    connection.execute("create table drawers (metadata)")
    connection.execute("insert into drawers values (?)", [json.dumps(metadata, ensure_ascii=False)])
    where, parameters = make_filter("metadata." + ".".join(keys), "found").where(0)
    if "\x00" not in "".join(keys):  # json_each shows a key only up to a NUL
        assert connection.execute(f"select 1 from drawers where {where}", parameters).fetchone()
