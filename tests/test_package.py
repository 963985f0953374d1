import subprocess
import sys

import pytest

import lapbook as lb


def test_everything_promised_is_there():
    for name in dir(lb):
        assert getattr(lb, name) is not None
    with pytest.raises(AttributeError, match="module 'lapbook' has no attribute 'laplace'"):
        _ = lb.laplace


def test_import_needs_neither_torch_nor_pybullet_nor_matplotlib():
    code = (
        "import lapbook, sys; print([m for m in ('torch', 'pybullet', 'matplotlib', 'networkx') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
