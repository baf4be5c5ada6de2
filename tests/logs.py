"""Readers of click logs, as tests ask them."""

import pyarrow as pa
import pytest

from twotowers.errors import InputError
from twotowers.logs.opening import open_log


def taken(path, format, **settings):
    """All pages, and the other counts."""
    log = open_log(path, format, **settings)
    found = pa.Table.from_batches(log.batches)
    return found.to_pylist(), log.seen


def refused(path, format, **settings):
    with pytest.raises(InputError) as error:
        taken(path, format, **settings)
    if path.exists():
        assert str(path) in str(error.value)
    return error.value
