"""The types of CSV columns: a number only where each text can be written back as it was."""

from __future__ import annotations

from decimal import Decimal
from math import isfinite, isnan

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hakiri_dagster.connectors.files.csv_inference import evidence_of, type_of

ODD = "does not read"
FORMS = "superfluous zeros"
DIGITS = "holds all of its digits"


def inferred(texts):
    return type_of(evidence_of(pa.array(texts, pa.string())))


@pytest.mark.parametrize(
    ("texts", "type_"),
    [
        ([], None),
        (["", " ", None], None),
        (["1", " -20 ", "", None], "bigint"),
        (["9223372036854775807", "-9223372036854775808"], "bigint"),
        (["9223372036854775808"], "decimal(38,0)"),
        (["1" * 38], "decimal(38,0)"),
        (["0", "0.5"], "numeric"),
        (["1.50", "2.25", "-3.00"], "numeric"),
        (["1.50", "2.25", "3"], "numeric"),
        (["1.5", "2.25", "3"], "numeric"),
        (["1.0", "2.25", "0.1"], "numeric"),
        (["0.125"], "numeric"),
        (["12345678901234.25"], "numeric"),
        (["0.1234567890123456789"], "numeric"),
        (["0.00012345678901234567890"], "numeric"),
        (["0.30000000000000004", "1.0"], "double"),
        (["1e-05", "2", "0.5", "1.5e+20"], "double"),
        (["1.0E-5", "0.5", "1.0", "1.5E20"], "double"),
        (["1.7976931348623157e+308", "5e-324"], "double"),
        (["NaN", "1.5", "-Infinity"], "double"),
        (["true", "FALSE"], "boolean"),
        (["2024-01-02", "1999-12-31"], "date"),
        (["2024-01-02", "2024-01-02 03:04"], "timestamp_ntz"),
        (["2024-01-02T03:04:05.123456789"], "timestamp_ntz"),
        (["2024-01-02 03:04:05+02:00", "2024-01-02T03:04:05Z"], "timestamp"),
        (["2024-01-02T03:04Z"], "string"),
        (["02134", "1"], "string"),
        (["-01"], "string"),
        (["00.5"], "string"),
        (["1,000"], "string"),
        (["1_000"], "string"),
        (["0x10"], "string"),
        (["1d"], "string"),
        (["\u00a012"], "string"),
        (["٣"], "string"),
        (["1", "x"], "string"),
        (["x", "+5"], "string"),
        (["true", "1"], "string"),
        (["t"], "string"),
        (["2024-1-5"], "string"),
        (["2024-02-30"], "string"),
        (["0000-01-01"], "string"),
        (["0000-01-01 00:00:00"], "string"),
        (["2024", "2024-01-02"], "string"),
        (["2024-01-02T25:00"], "string"),
        (["2024-01-02 03:04:05+02:00", "2024-01-02 03:04:05"], "string"),
        (["2024-01-02 03:04:05+02:00", "2024-01-02"], "string"),
    ],
)
def test_the_type_of_a_column(texts, type_):
    found = inferred(texts)
    assert (found.native_type or found.spark_type, found.why_text) == (type_, None)


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["1E5", "2E07"], ODD),
        (["1e5", "2"], ODD),
        (["1e-3"], ODD),
        (["+49301234"], ODD),
        (["12", "+1.5"], ODD),
        ([".5"], ODD),
        (["5."], ODD),
        (["-0"], ODD),
        (["-0.00", "1.00"], ODD),
        (["+Infinity", "1"], ODD),
        (["NAN", "1"], ODD),
        (["1.1", "1.10"], FORMS),
        (["1.5", "2.25", "3.00"], FORMS),
        (["1.10", "NaN"], FORMS),
        (["1.50", "3.00", "3"], "with and without decimals"),
        (["3.0", "3"], "with and without decimals"),
        (["nan", "1.5"], ODD),
        (["-inf", "1.5"], ODD),
        (["NaN", "nan"], ODD),
        (["1" * 39], DIGITS),
        (["1" * 37 + ".55"], DIGITS),
        (["0." + "123456789" * 5], DIGITS),
        (["9007199254740993", "1e-05"], DIGITS),
        (["1.2345678901234567891e-05"], DIGITS),
        (["1e-400"], DIGITS),
        (["1e+400"], DIGITS),
        (["0." + "0" * 400 + "1"], DIGITS),
    ],
)
def test_numbers_that_could_not_be_written_back_are_text_and_the_column_says_why(texts, why):
    found = inferred(texts)
    assert found.spark_type == "string"
    assert why in found.why_text


def test_what_tasks_have_found_adds_up_to_what_one_would_have_found():
    parts = [["1.5"], ["2.25", "x"], ["1.10"]]
    both = evidence_of(pa.array(parts[0])).plus(evidence_of(pa.array(parts[2])))
    assert type_of(both) == inferred([*parts[0], *parts[2]])
    assert type_of(both.plus(evidence_of(pa.array(parts[1])))).why_text is None


_digits = st.text("0123456789", min_size=0, max_size=20)
_number = st.builds(
    lambda sign, whole, fraction, exponent: f"{sign}{whole}{fraction}{exponent}",
    st.sampled_from(["", "", "", "-", "+"]),
    _digits,
    st.one_of(st.just(""), _digits.map(".{}".format)),
    st.sampled_from(["", "", "", "", "e5", "E5", "e-05", "E-5", "e+20", "e-300"]),
)
_column = st.lists(
    st.one_of(
        st.integers(-(10**6), 10**6).map(str),
        st.decimals(0, 1000, places=2).map(str),
        st.floats().map(repr),
        _number.filter(bool),
        st.sampled_from(["1.1", "1.10", "1", "1.0", "01"]),
    ),
    min_size=1,
    max_size=4,
    unique=True,
)


@given(_column)
def test_two_texts_never_become_one_number_and_no_digit_is_lost(texts):
    found = inferred(texts)
    type_ = found.native_type or found.spark_type
    assume(type_ not in (None, "string"))
    if type_ == "double":
        finite = [text for text in texts if isfinite(float(text))]
        assert all(Decimal(repr(float(text))) == Decimal(text) for text in finite)
        assert all(isnan(float(text)) or "nf" in text for text in set(texts) - set(finite))
    elif type_ != "numeric":  # which keeps each text as it is
        assert all(Decimal(text).as_tuple().exponent == 0 for text in texts)
    assert len({Decimal(text) for text in texts}) == len(texts)
