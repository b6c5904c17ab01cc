"""Tokens: only the whole one opens a socket."""

from __future__ import annotations

from forebay.executors.wire.tokens import bearer, is_allowed, new_token


def test_only_the_whole_token_is_allowed() -> None:
    token = "a-long-and-secret-token"
    assert is_allowed(bearer(token), token)
    assert is_allowed(bearer(token).encode(), token)
    for wrong in (None, "", token, bearer(token) + "x", bearer(token)[:-1], "Basic " + token, "é"):
        assert not is_allowed(wrong, token)


def test_no_two_are_alike() -> None:
    assert len({new_token() for _ in range(100)}) == 100
