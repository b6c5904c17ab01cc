"""The report shows everything that the summary holds, and fetches nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from support import summaries
from support.summaries import PARADIGMS, estimate, event, facts_of, series, summary, two_labels
from support.there import there

from forebay.report.drawing import COLOURS, LABELS_MAX, filling, line, mark
from forebay.report.facts import headline_of
from forebay.report.html import render_html
from forebay.report.label_plots import event_plot
from forebay.report.plots import auc_plot, lag_plot, step_rows_plot
from forebay.report.text import closing_lines, plain_lines, report_lines


@pytest.fixture(scope="module")
def page() -> str:
    return render_html(facts_of(summary()))


def test_plain_lines_hold_every_fact_and_a_terminal_gets_tables() -> None:
    lines = list(plain_lines(facts_of(summary())))
    assert "window 2013-06-01  generation 1  batch 900  stream 900  dead 7" in lines
    assert "auc 2013-06-02  mixture  true 0.670 (0.640-0.700)  fresh none" in lines
    assert "note  window 2013-01-01_2013-06-01, flights_table: before start" in lines
    assert "pooled  mixed  auc_true 0.680 (0.675-0.685)  auc_fresh none" in lines
    assert any(line.startswith("verdict  mixture and mixed do not differ") for line in lines)
    assert any(line.startswith("WARNING  mixture is a bad choice here") for line in lines)
    assert "advice  31% (28%-34%) of 1,000 positives are known" in lines
    assert "labels  31% of positives were known when their stream row was published" in lines
    assert "rows  planned = served = trained + dead; the model's own sums agree" in lines
    assert "restarts  data 1" in lines
    assert "time  plan 1.2 s, job 60.5 s" in lines
    facts = facts_of(summary())
    table = list(report_lines(facts, 120))
    row = next(line for line in table if line.strip().startswith("2013-06-01 "))
    assert row.split() == ["2013-06-01", "900", "900", "7", *["0.670", "(0.640-0.700)"] * 3]
    assert any(line.startswith("pooled ") for line in table)
    assert list(report_lines(facts, None)) == list(plain_lines(facts))


def headings(page: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", page)


def test_other_labels_are_named_and_without_a_stream_nothing_is_said_of_it() -> None:
    told = summary()
    told["pooled"]["label"] = "fresh"
    for one in told["windows"]:
        for each in one["sources"].values():
            each["feed"] = "batch"
    assert not any(line.startswith("labels ") for line in plain_lines(facts_of(told)))
    verdict = next(line for line in closing_lines(facts_of(told)) if line.startswith("verdict"))
    assert verdict.endswith("(fresh labels)")


def test_partial_figures_say_how_partial_they_are() -> None:
    data = summary()
    last = data["windows"][1]
    for metrics in last["metrics"].values():
        metrics["words_true"] = "0.647 so far, 378 of 919 rows judged"
    last["event"] = event(judged=378, complete=False)
    data["pooled"]["scored_at"] = "event"
    words = "mixed serves: at event time, by auc, mixed is better than mixture"
    data["gate"] = {"variant": "mixed", "declared": "mixture", "words": words}
    facts = facts_of(data)
    lines = list(plain_lines(facts))
    true, so_far = "0.647 so far, 378 of 919 rows judged", "0.660 so far, 378 of 919 rows judged"
    assert f"auc 2013-06-02  mixture  true {true}  fresh none" in lines
    assert "event auc 2013-06-01  mixture  0.660 (0.630-0.690)" in lines
    assert f"event auc 2013-06-02  mixture  {so_far}" in lines
    figures = "normalised entropy 0.940 (0.930-0.950)  calibration 1.02"
    assert f"pooled  mixed  event auc 0.660 (0.630-0.690)  {figures}" in lines
    assert "gate  mixed serves: at event time, by auc, mixed is better than mixture" in lines
    verdict = next(line for line in lines if line.startswith("verdict"))
    assert verdict.endswith("(event scores)")
    terminal = "\n".join(report_lines(facts, 200))
    page = render_html(facts)
    for words in (true, so_far):
        assert terminal.count(words) == len(PARADIGMS)
        assert page.count(words) == len(PARADIGMS)
    assert "mixed serves: at event time" in page
    assert "grey: labels are not complete yet: 2013-06-02 (378 of 919 rows judged)" in page


def test_a_page_begins_with_what_counts_and_ends_with_the_rows(page: str) -> None:
    text = " ".join(re.sub(r"<[^>]+>", " ", page.split("</style>")[1]).split())
    serving = "Serves: window 2013-06-02 (generation 1), since 2013-06-03 00:07 UTC."
    figure = "0.660 AUC of mixture, 95% interval 0.630 to 0.690"
    about = "scored at the event, 1,800 rows of 2 windows"
    begins = f"flights 2 windows, 2013-06-01 to 2013-06-02 {serving} {figure} {about} 31% of"
    assert text.startswith(begins)
    order = [page.rindex(f"<h2>{name}</h2>") for name in headings(page)]
    assert order == sorted(order)
    last = ["Rows", "Rows by window and source", "Rows of each source over steps"]
    assert headings(page)[-6:] == [*last, "Lag over steps", "Time by phase", "Model"]
    line = "the model&#39;s own sums agree</p>"
    assert page.count(line) == 1
    assert page.index(line) > page.index("<h2>Rows</h2>")


def test_rows_that_disagree_are_told_first() -> None:
    lost = {"rows_agree": False, "rows_line": "rows DISAGREE in window 1"}
    page = render_html(facts_of(summary() | lost | {"line": "trial"}))
    assert page.count('<p class="bad">rows DISAGREE in window 1</p>') == 2
    assert page.index("DISAGREE") < page.index("Serves: ")
    assert '<p class="period">2 windows, 2013-06-01 to 2013-06-02, line trial</p>' in page


def test_the_headline_is_of_the_variant_that_answers_and_says_what_it_leaves_out() -> None:
    data = summary()
    assert there(headline_of(facts_of(data))).variant == "mixture"
    data["gate"] = {"variant": "mixed", "declared": "mixture", "words": "mixed serves"}
    found = facts_of(data)
    assert (there(headline_of(found)).variant, str(found.published)[:17]) == (
        "mixed",
        "window 2013-06-02",
    )
    assert "00:07 UTC; mixed serves.</p>" in render_html(found)
    data["windows"][1]["event"] = event(judged=378, complete=False)
    late = "; labels of 1 window are not complete yet"
    assert there(headline_of(facts_of(data))).words.endswith(f"rows of 2 windows{late}")
    data["pooled"]["event"] = None
    known = there(headline_of(facts_of(data)))
    assert known.words == f"scored at publication, by complete labels{late}"
    assert there(known.figure).value == 0.68
    data["pooled"]["paradigms"]["mixed"] = {"auc_true": None, "auc_fresh": estimate(0.6)}
    assert "by labels as known then" in there(headline_of(facts_of(data))).words
    data["pooled"]["paradigms"], data["published"] = {}, None
    page = render_html(facts_of(data))
    assert f"<p>No AUC of mixed yet: no window is judged{late}</p>" in page
    assert "Serves: nothing, no model is published; mixed serves.</p>" in page
    assert 'class="headline"' not in page
    assert "no windows" in render_html(facts_of(data | {"windows": []}))


@pytest.mark.parametrize(("low", "high"), [(0.70, 0.75), (0.48, 0.53)])
def test_an_axis_shows_differences(low: float, high: float) -> None:
    data = summary()
    for one in data["windows"]:
        for name, value in zip(PARADIGMS, (low + 0.02, high - 0.02, low + 0.03), strict=True):
            figures = {"auc": value, "auc_interval": [low, high], "words": ""}
            true = {"auc_true": value, "auc_true_interval": [low, high]}
            one["event"]["answers"] = {name: figures}
            one["metrics"][name] |= true
    for drawn in (event_plot(facts_of(data)), auc_plot(facts_of(data))):
        svg = there(drawn).svg
        ticks = [float(text) for text in re.findall(r">(0\.\d+)</text>", svg)]
        assert low - 0.01 < min(ticks) < max(ticks) < high + 0.01
        assert ("stroke-dasharray" in svg) is (low < 0.5), "the line of chance"


def test_sources_and_slices_have_intervals_or_say_why_not() -> None:
    facts = facts_of(summary())
    lines, one_class = list(plain_lines(facts)), "one class: 0 positives of 312 rows"
    assert f"source  flights_files  rows 312  positives 0  mixed  {one_class}" in lines
    figure = "0.640 (0.610-0.670)"
    assert f"slice of carrier  <AA>  rows 500  positives 90  mixture/memory  {figure}" in lines
    terminal = "\n".join(report_lines(facts, 220))
    assert terminal.count(one_class) == len(PARADIGMS) + 1
    page = render_html(facts)
    assert [name for name in headings(page) if name.startswith("AUC by s")] == [
        *("AUC by source", "AUC by slice of carrier")
    ]
    assert page.count(one_class) == 1, "one cell for all variants"
    row = page[page.index("<td>&lt;AA&gt;</td>") :].split("</tr>")[0]
    assert re.findall("<td>(.*?)</td>", row) == ["&lt;AA&gt;", "500", "90", *[figure] * 4]
    assert page.index("all others") < page.index("&lt;AA&gt;"), "most rows first"


def test_what_a_row_did_not_say_is_counted_for_its_label() -> None:
    facts = facts_of(two_labels())
    lines = list(plain_lines(facts))
    rows = "window 2013-06-01  generation 1  batch 900  stream 900  dead 7  label not known 3"
    assert rows in lines
    assert "label sale  window 2013-06-01  label not known 1234" in lines
    assert not any("not known" in line for line in plain_lines(facts_of(summary())))
    terminal = "\n".join(report_lines(facts, 200))
    assert "1,234" in terminal
    page = render_html(facts)
    own = page[page.index("<h2>Label sale</h2>") :].split("</table>")[0]
    assert "<th>label not known</th>" in own
    assert "<td>2013-06-01</td><td>1,234</td>" in own
    assert "label not known" not in render_html(facts_of(summary()))


def test_what_a_phone_cannot_show_beside_each_other_is_scrolled(page: str) -> None:
    """Tables and drawings are wider than 400 px; the page around them is not."""
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    wide = re.findall(r"<(?:table|svg)\b", page)
    assert len(re.findall(r'<div class="scroll"[^>]*>\s*<(?:table|svg)\b', page)) == len(wide)


class _Outside(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            target = name in {"src", "href", "xlink:href", "srcset", "data"}
            if target and not (value or "").startswith("#"):
                self.fetched.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def test_the_page_needs_no_network_and_escapes_what_it_shows(page: str) -> None:
    seen = _Outside(page)
    assert seen.fetched == []
    assert {"script", "link"}.isdisjoint(seen.tags)
    assert not re.search(r"@import|url\(\s*['\"]?(?!#)", page)
    assert seen.tags.count("svg") == 9
    assert "/models/&lt;flights&gt;/saved_model" in page
    assert "mixture and mixed do not differ" in seen.text
    assert "before start" not in seen.text  # of the warm start, which has no row in the list below
    assert all(f"{name} true" in seen.text for name in PARADIGMS)
    assert '<p class="warning">Warning: mixture is a bad choice here: only 31% of positives' in page
    assert "<p>Advice: 31% (28%-34%) of 1,000 positives are known</p>" in page


def test_a_drawing_is_told_to_who_cannot_see_it_and_by_more_than_colour(page: str) -> None:
    drawn = re.findall(r"<svg ([^>]*)>", page)
    assert all('role="img"' in each for each in drawn)
    told = [found.group(1) for each in drawn if (found := re.search('aria-label="([^"]+)"', each))]
    assert len(told) == len(drawn) == 9
    assert all(f"<figcaption>{words}</figcaption>" in page for words in told)
    assert "mixed 0.680 (0.675-0.685)" in told[1]
    assert "flights_table 1,200 (33%); flights_files 600 (17%); departures 1,800 (50%)" in told[5]
    assert "at the end: mixture batch 0.5000; mixture stream 0.5900" in told[4]
    assert "mixture/memory 0.660 (0.630-0.690); 1,800 of 1,838 events judged" in told[0]
    assert "mixture 1.02" in told[2]
    assert "≤ 15 min 1% of 100; ≤ 1 h 35% of 900; longer 100% of 10" in told[3]
    marks = {mark(index) for index in range(len(COLOURS))}
    lines = {str(line(index)) for index in range(len(COLOURS))}
    fillings = {filling(index) for index in range(len(COLOURS))}
    assert len(marks) == len(lines) == len(fillings) == len(COLOURS)


def test_every_colour_is_the_pages_own_in_light_and_dark_and_a_page_the_same_each_time(
    page: str,
) -> None:
    style, drawings = page.split("</style>", 1)
    assert not re.findall(r"#[0-9a-f]{6}\b", drawings)
    used = set(re.findall(r"var\((--[a-z0-9-]+)\)", page))
    light, dark = style.split("prefers-color-scheme: dark")
    for name in used:
        assert f"{name}: #" in light, name
        assert f"{name}: #" in dark, name
    assert render_html(facts_of(summary())) == page


@pytest.mark.parametrize("windows", [1, 60])
def test_a_page_of_one_window_or_many(windows: int) -> None:
    data = summary()
    data["windows"] = [summaries.window(f"2013-06-{1 + number:02d}") for number in range(windows)]
    data["windows"][0]["series"] = series(1)
    assert render_html(facts_of(data)).count("<svg") == 9
    rows = there(step_rows_plot(facts_of(data)))
    assert rows.svg.count("2013-06-") <= LABELS_MAX


def test_without_steps_or_event_scores_there_is_no_empty_plot() -> None:
    data = summary()
    data["windows"][1]["series"] = series(6)
    assert "Rows trained over 20 steps: " in render_html(facts_of(data))
    data["windows"][0]["series"] = None
    assert lag_plot(facts_of(data)) is not None
    data["windows"][1]["series"] = None
    data["pooled"] |= {"event": None, "label_ages": []}
    for one in [data["warm_start"], *data["windows"]]:
        one["event"] = None
    facts = facts_of(data)
    page = render_html(facts)
    assert [name for name in headings(page) if "steps" in name] == []
    assert (facts.pooled.answers, page.count("<svg")) == ({}, 3)


def test_a_counting_run_has_a_report_too() -> None:
    data = summary() | {"paradigms": []}
    for missing in ("pooled", "warm_start", "restarts", "phases_seconds", "notes"):
        del data[missing]
    for one in data["windows"]:
        one |= {"metrics": {}, "label_completeness": None}
    assert "<svg" in render_html(facts_of(data))
    assert list(plain_lines(facts_of(data)))
