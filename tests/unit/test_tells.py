"""The search for messages in outputs: it finds what is there, and nothing else."""

from __future__ import annotations

import pytest

from tests.support.tells import tells


def test_a_message_is_found_by_id_and_arguments() -> None:
    shown = "pgdyno: cannot\nread  /a/b: No such file\nCheck its permissions."
    assert tells(shown, "error-cannot-read") and tells(shown, "error-cannot-read", path="/a/b")
    assert not tells(shown, "error-cannot-read", path="/c")
    assert not tells("read /a: cannot", "error-cannot-read")
    assert not tells("", "error-cannot-read")
    # The first place that begins alike is not the message.
    assert tells("cannot read it, cannot read /x: gone", "error-cannot-read", path="/x")


def test_what_the_catalogue_lacks_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        tells("x", "error-nowhere")
    with pytest.raises(KeyError):
        tells("x", "error-cannot-read", file="/a")
