"""What some tests need and not every Python has."""

from __future__ import annotations

import sys

import pytest

gensim = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="gensim 4.4 cannot be installed on Python 3.14"
)
