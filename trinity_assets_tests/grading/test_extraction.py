"""Each way in which a right answer is known to be misread, with the reading that is right."""

import pytest

from trinity_assets.grading.extraction import Extraction, clean_completion
from trinity_assets.grading.numbers import extract_number
from trinity_assets.grading.short_answers import extract_short_answer, normalize_short_answer


class TestCleaning:
    @pytest.mark.parametrize(
        ("text", "cleaned"),
        [
            ("    return 1\r\n", "    return 1\n"),
            ("\x1b[1m18\x1b[0m", "18"),
            ("<think>17?</think>\n18", "\n18"),
            ("<think>a</think>17<think>b</think>18", "18"),
            ("17? no</think>18", "18"),
            ("<THINK>17</THINK>18", "18"),
            ("18<|im_end|>\n<|im_start|>user\nand 5 + 5?", "18"),
            ("<|im_start|>assistant\n18<|im_end|>", "18"),
            ("<|endoftext|>18</s>", "18"),
            ("<|im_end|>", ""),
        ],
    )
    def test_keeps_what_was_meant_as_the_answer(self, text: str, cleaned: str):
        assert clean_completion(text) == cleaned

    @pytest.mark.parametrize("text", ["<think>18 it is", "<think>a</think><think>18"])
    def test_an_unclosed_thought_is_no_answer(self, text: str):
        assert clean_completion(text) is None
        assert extract_number(text) == Extraction(None, "unclosed_think")
        assert extract_short_answer(text) == Extraction(None, "unclosed_think")


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "value", "rule"),
        [
            ("16 - 3 - 4 = 9\n#### 9 * 2 = 18\nDone in 2024.", "18", "hash_line"),
            ("#### 17\nWait.\n#### 18", "18", "hash_line"),
            ("#### Step 2: add\nThe sum is 18", "18", "last_number"),
            ("#### Final answer: $1,234.50", "1234.5", "hash_line"),
            (r"\boxed{3} no, \boxed{\text{about }18}, in 2 steps", "18", "boxed"),
            (r"\boxed{\frac{18}{1}}", "18", "boxed"),
            ("The answer is 18. That took 3 steps.", "18", "answer_marker"),
            ("Answer: 5 + 7 = 12 apples", "12", "answer_marker"),
            ("**Answer:**\n**18**", "18", "answer_marker"),
            ("Answer: unknown\nSo 18", "18", "last_number"),
            ("Question: 2 + 2?\nAnswer: 4\nQ: 3 + 3?\nAnswer: 6", "4", "answer_marker"),
            ("17, then 18", "18", "last_number"),
        ],
    )
    def test_rules_apply_in_order(self, text: str, value: str, rule: str):
        found = extract_number(text)
        assert (found.value, found.rule) == (value, rule)

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("- 5", "5"),
            ("-5", "-5"),
            ("16 -3", "3"),
            ("10-3", "3"),
            ("(2) -3", "3"),
            ("it is -3", "-3"),
            ("\u22123", "-3"),
            ("-$5", "-5"),
            ("$-5", "-5"),
            (r"\$5.00", "5"),
            ("€7", "7"),
            ("£1,450,000", "1450000"),
            ("1,2,3", "3"),
            ("1234,567", "567"),
            ("1,2345", "2345"),
            ("70\u2009000", "70000"),
            ("70 000", "70000"),
            ("1\u00a0450\u00a0000", "1450000"),
            ("\uff11\uff18", "18"),
            ("**18**", "18"),
            ("2**3", "3"),
            ("20%", "20"),
            ("18.", "18"),
            ("...18", "18"),
            (".5", "0.5"),
            ("18.50", "18.5"),
            ("100", "100"),
            ("1e3", "1000"),
            ("2.5E-3", "0.0025"),
            ("3eggs", "3"),
            ("H2O, 5", "5"),
            ("5, H2O", "5"),
            ("covid-19", "19"),
            ("1.45 million", "1450000"),
            ("3 billionaires", "3"),
            ("-0", "0"),
            ("0.0", "0"),
            ("9" * 5000, "9" * 5000),
            ("no idea", None),
        ],
    )
    def test_reads_signs_separators_and_scales(self, text: str, value: str | None):
        assert extract_number(text).value == value

    @pytest.mark.parametrize(
        ("text", "ambiguous"),
        [
            ("#### 18", False),
            ("#### 17\n#### 18", True),
            ("Answer: 18 (3 a day)", True),
            ("2 * 9 = 18", False),
            ("17 or 18", True),
            ("17 or 18\nThe answer is 18.", False),
        ],
    )
    def test_says_when_it_could_have_read_another_number(self, text: str, ambiguous: bool):
        assert extract_number(text).ambiguous is ambiguous


class TestShortAnswers:
    @pytest.mark.parametrize(
        ("text", "value", "rule"),
        [
            ("Paris", "Paris", "whole"),
            ("a baby dog.", "a baby dog.", "whole"),
            ("The capital of France is Paris.", "Paris", "copula"),
            ("The capital of France is Paris, which lies on the Seine. It is old.", "Paris", "copula"),
            ('The past tense of sing is "sang" or "sung"', "sang", "copula"),
            ("Argentina is located in South America", "South America", "copula"),
            ("A baby rabbit is called a kit.", "a kit", "copula"),
            ("Opposite: **cold**", "cold", "copula"),
            ("Let us see.\nThe opposite of hot is cold.", "cold", "copula"),
            ("The sky is blue. The answer is no.", "no", "answer_marker"),
            ("The answer is hot. Wait, the answer is cold", "cold", "answer_marker"),
            ("**Final answer:** Paris (in France)", "Paris", "answer_marker"),
            ("Answer:\nParis", "Paris", "answer_marker"),
            ("Paris\n\nQ: And Italy?\nAnswer: Rome", "Paris", "whole"),
            ("No, the sun is not a star.", "No", "yes_no"),
            ("Yes", "Yes", "yes_no"),
            ("No one knows the capital", "No one knows the capital", "last_line"),
            ("Norway", "Norway", "whole"),
            (" \n", None, "empty"),
        ],
    )
    def test_reads_the_answer_by_the_first_rule_that_applies(self, text: str, value: str | None, rule: str):
        found = extract_short_answer(text)
        assert (found.value, found.rule) == (value, rule)

    def test_says_when_the_model_gave_two_answers(self):
        assert extract_short_answer("The answer is hot. The answer is cold.").ambiguous
        assert not extract_short_answer("The answer is cold. The answer is Cold!").ambiguous

    @pytest.mark.parametrize(
        ("text", "normal"),
        [
            ("  **The Mice**. ", "mice"),
            ('"An  apple"', "apple"),
            ("\uff30aris", "paris"),
            ("A", "a"),
            ("“B”", "b"),
            ("Washington, D.C.", "washington, d.c"),
            ("Theme", "theme"),
            ("`kit`", "kit"),
            ("STRASSE", normalize_short_answer("straße")),
            ("!?", ""),
        ],
    )
    def test_normalizing_folds_what_changes_no_answer(self, text: str, normal: str):
        assert normalize_short_answer(text) == normal
