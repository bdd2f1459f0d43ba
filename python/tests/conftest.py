"""What all tests share."""

import pytest

import cranefold as cf
from cranefold import _core


@pytest.fixture(autouse=True)
def default_settings():
    """Each test begins and ends with the default threads and widths."""
    yield
    cf.set_num_threads(0)
    _core.set_width(0)
