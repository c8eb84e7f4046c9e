"""What is no markup is escaped, wherever it is put."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tcc.pages import Html, element, joined, text
from tests.pages.reading import read


@given(st.text(), st.text())
def test_any_text_is_one_text_of_one_element(content: str, value: str) -> None:
    found = read(element("p", content, title=value).encode())
    assert found.tags == ["p"]
    assert [name for _, name, _ in found.attributes] == ["title"]
    assert found.text == text_shown(content)
    assert found.attributes[0][2] == text_shown(value)


def text_shown(content: str) -> str:
    from tcc_certs.errors import escaped

    return escaped(content)


def test_markup_is_not_escaped_twice_and_texts_are_once() -> None:
    inner = element("b", "<&>")
    assert element("p", inner, "<") == "<p><b>&lt;&amp;&gt;</b>&lt;</p>"
    assert joined([inner, "'"], " & ") == "<b>&lt;&amp;&gt;</b> &amp; &#x27;"
    assert text(Html("<i>")) == "<i>"


def test_what_is_made_of_markup_by_hand_is_text_again() -> None:
    assert not isinstance(Html("<b>") + "<i>", Html)
    assert element("p", Html("<b>") + "<i>") == "<p>&lt;b&gt;&lt;i&gt;</p>"


@pytest.mark.parametrize("name", ["", "p onclick=x", "p>", "1", 'a"', "a/"])
def test_no_text_becomes_the_name_of_an_element_or_attribute(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        element(name)
    with pytest.raises(ValueError, match="name"):
        element("p", **{name: "x"})


def test_absent_attributes_are_left_out() -> None:
    made = element("input", class_="a", aria_label=None, disabled=True, hidden=False)
    assert made == '<input class="a" disabled>'
