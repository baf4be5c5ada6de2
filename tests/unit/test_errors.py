"""Messages of bad input: where, what, and what was expected."""

import math

import numpy as np
import pytest

from twotowers.errors import InputError, check_range, nearest


def test_message_names_file_line_field_and_expectation():
    error = InputError("'x' is odd", path="a.txt", line=3, field="label", expected="0 to 4")
    assert str(error) == "a.txt:3: label: 'x' is odd (expected 0 to 4)"
    assert (error.path, error.line, error.field) == ("a.txt", 3, "label")


def test_message_leaves_out_what_is_not_known():
    assert str(InputError("odd")) == "odd"
    assert str(InputError("odd", field="f")) == "f: odd"


@pytest.mark.parametrize("value", [-1, 0, 0.5, 1, np.int64(1), np.float32(0.5)])
def test_check_range_returns_what_it_accepts(value):
    assert check_range(value, field="x", low=-1, high=1) == value
    if int(value) == value:
        assert check_range(value, field="x", low=-1, high=1, whole=True) == value


@pytest.mark.parametrize("value", [-1.001, 1.001, math.nan, math.inf, "0", None, True, [0]])
@pytest.mark.parametrize("whole", [False, True])
def test_check_range_names_field_value_and_range(value, whole):
    with pytest.raises(InputError) as caught:
        check_range(value, field="strength", low=-1, high=1, whole=whole)
    message = str(caught.value)
    assert "strength" in message
    assert repr(value) in message
    assert "[-1, 1]" in message


@pytest.mark.parametrize("value", [2.0, 2.5])
def test_fractions_are_no_whole_numbers(value):
    with pytest.raises(InputError, match=r"batch: .* \(expected an integer in \[1, 9\]\)"):
        check_range(value, field="batch", low=1, high=9, whole=True)


def test_nearest_offers_the_closest_name_and_lists_all():
    hint = nearest("expret", ["linear", "deep", "expert"])
    assert hint == "one of 'deep', 'expert', 'linear'; did you mean 'expert'?"
    assert "did you mean" not in nearest("zzz", ["linear", "deep"])
