"""One reading of parameters for every face: what is taken, what is refused and in which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_mempalace.config import Settings
from datasette_mempalace.errors import BadInput, BadParameter
from datasette_mempalace.request import PARAMETERS, parse_request, request_parameters
from datasette_mempalace.scope import Scope, build_where_filter

SETTINGS = Settings()


def read(**parameters):
    return parse_request({"q": "words", **parameters}, SETTINGS)


def test_what_is_not_given_is_default():
    request = read()
    assert (request.n_results, request.max_distance, request.ranking) == (10, 0.0, "palace")
    assert request.scope.is_everything
    assert request.offset == 0


def test_case_12_an_empty_text_is_no_filter():
    request = read(
        wing="", room=[""], source_file="", since="", before=None, n_results="", max_distance="", next=""
    )
    assert request == read()


def test_wings_may_be_several_and_none_is_a_wing_too():
    assert read(wing=["a", "b", "a"], wing__isnull="1").scope.wings == ("a", "b", None)
    assert read(wing=["a", None]).scope.wings == ("a", None)


@pytest.mark.parametrize(
    "value", ["0", "-1", "abc", "1000000", "1.5", "1e1", "1_0", "nan", "inf", "٣.٥", ["1", "2"], True]
)
def test_case_15_n_results_is_a_whole_number_within_its_limits(value):
    with pytest.raises(BadParameter) as caught:
        read(n_results=value)
    assert caught.value.parameter == "n_results"
    assert "1 to 1,000" in caught.value.message or "given once" in caught.value.message
    assert caught.value.status == 400


@pytest.mark.parametrize("value", [20, "20", 20.0, "20.0", ["20"]])
def test_a_number_may_come_as_a_number_or_as_text(value):
    assert read(n_results=value).n_results == 20


@pytest.mark.parametrize("value", ["-0.1", "2.1", "nan", "inf", "x", "0_1"])
def test_max_distance_lies_between_0_and_2(value):
    with pytest.raises(BadParameter, match="from 0 \\(no limit\\) to 2"):
        read(max_distance=value)


@pytest.mark.parametrize("value", ["yesterday", "2026", "2026-13-01", "01.02.2026", "2026-04-01T25:00", "0"])
def test_case_13_a_date_that_is_none_is_refused(value):
    with pytest.raises(BadParameter, match="such as 2026-03-14"):
        read(since=value)


def test_case_13_an_inverted_window_is_refused():
    with pytest.raises(BadParameter, match="before the end of the window"):
        read(since="2026-04-02", before="2026-04-01")


def test_dates_become_moments_in_utc_when_they_name_a_zone():
    scope = read(since="2026-04-01", before="2026-04-02T02:00:00+02:00").scope
    assert (scope.since, scope.before) == ("2026-04-01 00:00:00", "2026-04-02 00:00:00")
    assert read(since="2026-04-01T00:00:00Z").scope.since == "2026-04-01 00:00:00"


@pytest.mark.parametrize(
    ("name", "value"),
    [("candidate_strategy", "both"), ("ranking", "best"), ("vector_disabled", "2"), ("facets", "maybe")],
)
def test_choices_name_what_is_allowed(name, value):
    with pytest.raises(BadParameter) as caught:
        read(**{name: value})
    assert caught.value.parameter == name
    assert repr(value) in caught.value.message


@pytest.mark.parametrize("query", [None, "", "   ", "\n\t"])
def test_a_search_needs_words(query):
    with pytest.raises(BadInput, match="q is missing or blank"):
        parse_request({"q": query}, SETTINGS)
    assert parse_request({"q": query}, SETTINGS, allow_blank=True).query == ""


def test_a_query_has_a_greatest_length():
    with pytest.raises(BadParameter, match="10,000"):
        parse_request({"q": "x" * 10_001}, SETTINGS)


def test_case_20_a_lone_surrogate_in_a_query_is_replaced():
    assert parse_request({"q": "bad \ud800"}, SETTINGS).query == "bad \ufffd"


def test_unknown_parameters_are_refused_only_where_asked():
    assert parse_request({"q": "x", "utm_source": "mail"}, SETTINGS).query == "x"
    with pytest.raises(BadParameter, match="options: 'limit'"):
        parse_request({"q": "x", "limit": 5}, SETTINGS, strict=True)


def test_ids_narrow_and_an_empty_list_allows_nothing():
    assert read(ids="1, 2 3").scope.ids == (1, 2, 3)
    assert read(ids="[1,2]").scope.ids == (1, 2)
    assert read(ids=[]).scope.ids == read(ids="[]").scope.ids == ()
    assert read(ids="").scope.ids is None
    for bad in ("x", [1.5], [True], [10**30], {"a": 1}):
        with pytest.raises(BadParameter, match="ids"):
            read(ids=bad)


def test_a_request_goes_back_into_a_url_and_out_again():
    request = read(
        wing=["a&b", "日本語"],
        room__isnull="1",
        since="2026-04-01",
        n_results=20,
        max_distance=0.5,
        vector_disabled=1,
        ids=[3],
    )
    pairs = request_parameters(request, SETTINGS)
    again = {}
    for name, value in pairs:
        again.setdefault(name, []).append(value)
    assert parse_request(again, SETTINGS) == request
    assert request_parameters(read(), SETTINGS) == [("q", "words")]


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.lists(st.text(max_size=5) | st.integers() | st.none(), max_size=3) | st.dictionaries(st.text(max_size=2), st.integers(), max_size=1)  # fmt: skip


@given(st.dictionaries(st.sampled_from(PARAMETERS), ANYTHING))
def test_any_parameters_are_taken_or_refused_in_words(parameters):
    try:
        request = parse_request(parameters, SETTINGS)
    except BadInput as error:
        assert error.message.split(":")[0].split(" ")[0] in PARAMETERS
        assert len(error.message) < 400
    else:
        assert request.query.strip()
        assert 1 <= request.n_results <= 1000


@pytest.mark.parametrize(
    ("wing", "room", "expected"),
    [
        (None, None, {}),
        ("", "", {}),
        ("w", None, {"wing": "w"}),
        (None, "r", {"room": "r"}),
        ("w", "r", {"$and": [{"wing": "w"}, {"room": "r"}]}),
    ],
)
def test_build_where_filter(wing, room, expected):
    assert build_where_filter(wing, room) == expected


def test_chroma_is_not_asked_what_it_cannot_say():
    assert Scope(wings=("a", "b")).chroma_where() == {"wing": {"$in": ["a", "b"]}}
    assert Scope(wings=(None,)).chroma_where() is None
    assert Scope(since="2026-01-01 00:00:00").chroma_where() is None
    assert Scope(ids=(1,)).chroma_where() is None
