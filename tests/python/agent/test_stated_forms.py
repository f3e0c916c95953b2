"""Values that the task states in another form have an origin; values beside them have none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip import Agent, ScriptedModel, tool
from callslip.testing import Say

SAY = Say("react")
MONTHS = [
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
]
WORDS = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
]
TENS = {20: "twenty", 30: "thirty", 40: "forty", 50: "fifty"}


@tool
def take(x: Any) -> str:
    """Take a value."""
    return "taken"


def check(stated: list[Any], made_up: list[Any], task: str) -> None:
    values = [*stated, *made_up]
    agent = Agent(ScriptedModel([SAY.call("take", x=values), SAY.finish("done")]), tools=[take])
    origins = agent.run_sync(task).tickets[0].origins
    kinds = [(one, origins[f"/x/{at}"].kind) for at, one in enumerate(values)]
    assert kinds == [*((one, "task") for one in stated), *((one, "none") for one in made_up)], task


def words(number: int) -> str:
    if number <= 20:
        return WORDS[number]
    tens, ones = TENS[number // 10 * 10], number % 10
    return f"{tens}-{WORDS[ones]}" if ones else tens


def ordinal(day: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd"}
    return f"{day}{endings.get(day, 'th')}"


@st.composite
def ranges(draw: st.DrawFn) -> tuple[str, int, int, int]:
    month, first = draw(st.integers(1, 12)), draw(st.integers(2, 24))
    last = draw(st.integers(first + 2, 27))
    name = draw(st.sampled_from([MONTHS[month - 1], MONTHS[month - 1][:3]]))
    joint = draw(st.sampled_from(["-", " - ", "\N{EN DASH}", " to ", " until ", " and "]))
    form = draw(
        st.sampled_from(
            [
                f"{first}{joint}{last} {name}",
                f"{first}{joint}{last} {name} 2026",
                f"{ordinal(first)}{joint}{ordinal(last)} of {name}",
                f"{name} {first}{joint}{last}",
                f"{name} {first}{joint}{last}, 2026",
                f"{name} {ordinal(first)}{joint}{ordinal(last)}",
                f"2026-{month:02}-{first:02}/{last:02}",
                f"2026-{month:02}-{first:02}/{month:02}-{last:02}",
                f"2026-{month:02}-{first:02}/2026-{month:02}-{last:02}",
            ]
        )
    )
    return form, month, first, last


@settings(deadline=None, max_examples=40)
@given(ranges(), st.sampled_from(["Book {}.", "I am there {}, with Ann.", "({})"]))
def test_the_days_of_a_range_are_stated(form, text):
    span, month, first, last = form
    task = text.format(span)
    day = f"2026-{month:02}-{{:02}}"
    name = MONTHS[month - 1]
    stated = [day.format(first), day.format(last), f"{name} {first}", f"{last} {name}"]
    stated += [f"{day.format(first)}/{day.format(last)}", f"{first}-{last} {name}"]
    other = f"2026-{month % 12 + 1:02}-{first:02}"
    check(stated, [day.format(last + 1), day.format(first - 1), other], task)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 11),
    st.integers(13, 27),
    st.booleans(),
    st.sampled_from(["{m} {d}", "{d} {m}", "{d}. {m}", "{m}. {d}", "{m} {d}, 2026", "{d}-{m}"]),
    st.sampled_from(
        ["{m} {d}", "{d} {m}", "{d} {m}.", "2026-{n:02}-{d:02}", "{d}.{n}.", "{n}/{d}"]
    ),
)
def test_a_day_of_a_month_is_stated_in_either_order(month, day, is_short, text, value):
    name = MONTHS[month][:3] if is_short else MONTHS[month]
    task = f"Book {text.format(m=name, d=day)} for me."
    names = {name, MONTHS[month]}
    stated = [value.format(m=one, d=day, n=month + 1) for one in names]
    check(stated, [value.format(m=name, d=day + 1, n=month + 1)], task)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 9_999), st.integers(0, 4), st.integers(0, 4))
def test_leading_zeros_change_no_number(number, in_text, in_value):
    task = f"Book Room {'0' * in_text}{number}."
    stated = [number, str(number), f"Room {'0' * in_value}{number}", f"{'0' * in_value}{number}"]
    check(stated, [number + 10_000, f"{number}1", f"Room {number + 10_000}"], task)


@settings(deadline=None, max_examples=40)
@given(st.integers(10**19, 10**40), st.booleans(), st.booleans())
def test_integers_of_any_size_are_compared_by_their_digits(number, is_grouped, is_negative):
    task = f"Look up {f'{number:,}' if is_grouped else number}."
    sign = -1 if is_negative else 1
    check([sign * number], [sign * (number + 1), sign * number * 10], task)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 12),
    st.integers(1, 11).map(lambda five: 5 * five),
    st.sampled_from(["", " in the evening", " pm"]),
    st.data(),
)
def test_clock_words_state_a_time(hour, minute, half, data):
    following = hour % 12 + 1
    shares = {15: "quarter", 30: "half"}
    forms = [f"{words(hour)} {words(minute) if minute > 9 else 'oh ' + words(minute)}"]
    if minute <= 30:
        forms += [f"{shares.get(minute, words(minute))} past {words(hour)}"]
        forms += [f"{words(minute)} minutes after {hour}"]
    if minute >= 30:
        share = {15: "a quarter"}.get(60 - minute, words(60 - minute))
        forms += [f"{share} to {words(following)}", f"{60 - minute} minutes to {following}"]
    task = f"Wake me at {data.draw(st.sampled_from(forms))}{half}, please."
    early, late = hour % 12, hour % 12 + 12
    stated = [f"{late}:{minute:02}", f"{late}:{minute:02}:00"]
    made_up = [
        f"{late}:{minute + 1:02}" if minute < 59 else "23:59",
        f"{(late + 2) % 24}:{minute:02}",
    ]
    # "10:05" may be meant for 22:05.
    if not half or early < 10:
        (made_up if half else stated).append(f"{early:02}:{minute:02}")
    check(stated, [one for one in made_up if one not in stated], task)


@pytest.mark.parametrize("text", ["five o'clock", "five in the afternoon", "five pm"])
def test_a_full_hour_in_words_states_a_time(text):
    check(["17:00", "17:00:00"], ["18:00", "17:30"], f"Wake me at {text}.")


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["49", "44", "1", "420"]),
    st.integers(20, 999),
    st.integers(100_000, 9_999_999),
    st.sampled_from(["+{c} (0){a} {n}", "+{c} (0) {a} {n}", "+{c}(0){a}-{n}"]),
)
def test_a_zero_in_brackets_belongs_to_a_number_in_its_country(country, area, number, form):
    task = f"Call {form.format(c=country, a=area, n=number)} today."
    stated = [f"+{country} {area} {number}", f"+{country}{area}{number}", f"0{area} {number}"]
    stated += [f"+{country} (0){area} {number}", f"+{country} (0)-{area}-{number}"]
    wrong = [f"+{country} {area} {number + 1}", f"+{country} {area + 1} {number}"]
    check(stated, [*wrong, f"+7 {area} {number}"], task)


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["ada@home.example", "ada.b+c@home.example", "https://shop.example.com/a"]),
    st.sampled_from(["请联系", "メールは", "ที่", "보내 ", ""]),
    st.sampled_from(["或者李四", "まで", "ครับ", "로 보내", ""]),
)
def test_an_address_stands_beside_letters_of_other_scripts(address, before, after):
    task = f"{before}{address}{after}"
    check([address], [f"x{address}", f"{address}x"], task)


@pytest.mark.parametrize("name", ["emailBody", "email_body", "bodyText", "body2", "newMessage"])
def test_an_argument_whose_name_ends_as_a_text_is_composed(name):
    @tool
    def write(**values: Any) -> str:
        """Write."""
        return "written"

    agent = Agent(
        ScriptedModel([SAY.call("write", **{name: "Dear Sir"}), SAY.finish("done")]), tools=[write]
    )
    origins = agent.run_sync("Write a letter.").tickets[0].origins
    assert origins[f"/{name}"].kind == "composed"
