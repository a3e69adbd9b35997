"""When too many settled questions have no whole answer."""

from __future__ import annotations

from trinity_assets.workers.cut_short import cut_short


def test_a_tenth_is_not_too_many_and_more_is() -> None:
    assert not cut_short({"answered": 90, "truncated": 6, "timed_out": 4}).too_many
    found = cut_short({"answered": 89, "truncated": 6, "refused": 1, "no_answer": 2, "timed_out": 2})
    assert found.too_many and found.share == 0.11
    assert str(found) == (
        "11.0% of 100 have no whole answer: 6 truncated, 1 refused, 2 no_answer, 2 timed_out; above 10%, raise the "
        "worker's max_tokens or timeout_s, or read its scores with care"
    )


def test_a_question_too_long_for_the_context_is_the_questions_fault() -> None:
    found = cut_short({"answered": 5, "context_exceeded": 5})
    assert (found.share, found.too_many) == (0.0, False)
    assert str(found) == "none of 10 was cut short, refused or left without an answer"
    assert cut_short({}).share == 0.0
