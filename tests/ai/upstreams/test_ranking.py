"""The order of a model's servers: stable for a conversation, and in proportion to their weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from outbound.ai.echo import EchoUpstream, echo_model
from outbound.ai.models import Model
from outbound.ai.ranking import ranked

CALLS = [(f"person-{person}", f"app-{app}") for person in range(500) for app in range(4)]


def at(name: str, weight: float = 1.0) -> Model:
    """A model at a server of this name."""
    upstream = EchoUpstream()
    upstream.name = name
    return replace(echo_model(), upstream=upstream, weight=weight)


def first(candidates: list[Model], *call: str) -> str:
    """The server that is asked first."""
    return ranked(candidates, *call)[0].upstream.name


weights = st.lists(st.sampled_from([0.5, 1.0, 1.0, 2.0, 5.0]), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(weights, st.sampled_from([0.5, 1.0, 3.0]), st.integers(0, 10**6))
def test_a_new_server_moves_only_its_share(given_weights: list[float], new: float, seed: int) -> None:
    before = [at(f"{seed}-{place}", weight) for place, weight in enumerate(given_weights)]
    after = [*before, at(f"{seed}-new", new)]
    moved = 0
    for call in CALLS:
        old, now = first(before, *call), first(after, *call)
        moved += now != old
        assert now in (old, f"{seed}-new"), "nobody moves between servers that were there"
    share = new / (sum(given_weights) + new)
    assert abs(moved / len(CALLS) - share) < 0.06


@settings(max_examples=25, deadline=None)
@given(weights, st.integers(0, 10**6))
def test_each_server_comes_first_in_proportion_to_its_weight(given_weights: list[float], seed: int) -> None:
    candidates = [at(f"{seed}-{place}", weight) for place, weight in enumerate(given_weights)]
    chosen = [first(candidates, *call) for call in CALLS]
    for candidate in candidates:
        share = candidate.weight / sum(given_weights)
        assert abs(chosen.count(candidate.upstream.name) / len(CALLS) - share) < 0.06


@given(st.permutations(["a", "b", "c", "d"]), st.text(max_size=9), st.text(max_size=9))
def test_the_order_in_the_file_does_not_matter(names: list[str], person: str, app: str) -> None:
    found: list[Any] = [one.upstream.name for one in ranked(map(at, names), person, app)]
    assert found == [one.upstream.name for one in ranked(map(at, sorted(names)), person, app)]


@given(st.text(max_size=9), st.text(max_size=9))
def test_a_server_without_weight_comes_last(person: str, app: str) -> None:
    candidates = [at("spare", 0), at("a", 0.001), at("other spare", 0), at("b")]
    found = [one.upstream.name for one in ranked(candidates, person, app)]
    assert {*found[:2]} == {"a", "b"}


def test_person_app_and_model_each_count() -> None:
    candidates = [at(str(name)) for name in range(50)]
    other = [replace(one, model_id="another") for one in candidates]
    asked = [first(candidates, "p", "a"), first(candidates, "q", "a"), first(candidates, "p", "b")]
    assert len({*asked, first(other, "p", "a")}) == 4
    assert first(candidates, "p", "a") == first(candidates, "p", "a")
