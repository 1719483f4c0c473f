from __future__ import annotations

from airflow_hudi_maint.core.model.expiry_guards import ExpiryGuards
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.planning.expiry import guard_problems
from airflow_hudi_maint.core.reporting.expiry_markdown import expiry_markdown
from tests.unit.core.planning.builders import expiry, partition, policies

ROWS = [partition(f"city=c{number:02}", total_bytes=1024 * number, records=10) for number in range(1, 31)]


def test_a_plan_is_written_for_who_approves_it() -> None:
    """Figures first, then what is against it, the policies, and the partitions with their reasons."""
    by = policies("/ KEEP_BY_COUNT 10")
    plan = expiry(*ROWS, by=by, fields=("city",))
    text = expiry_markdown(plan, problems=guard_problems(plan, ExpiryGuards()))
    assert text.startswith(
        "### Expiry of trips\n\n**20 of 30 partitions** of `/lake/trips` would be dropped: 210 KiB of "
    )
    assert "465 KiB (45.2%), 20 files, 200 records. 10 are kept, 0 are blocked." in text
    assert "**Refused as it is**\n\n- it drops 20 of 30 partitions (66.7%), above max\\_partition\\_share=0.5" in text
    assert "| KEEP\\_BY\\_COUNT 10 on / | argument |" in text
    assert (
        "| `city=c20` | 20 KiB | 10 | KEEP\\_BY\\_COUNT 10 on / | 20th smallest of 30 values of city, 10 kept |" in text
    )


def test_its_length_is_bounded() -> None:
    """The largest partitions are listed, the rest counted, with their bytes."""
    plan = expiry(*ROWS, by=policies("/ KEEP_BY_COUNT 10"), fields=("city",))
    text = expiry_markdown(plan, max_rows=3)
    assert ["`city=c20`", "`city=c19`", "`city=c18`"] == [
        line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| `city")
    ]
    assert "… and 17 more, 153 KiB together; the plan's file has them all." in text


def test_names_are_no_markup() -> None:
    """A partition's name can neither end a cell nor become a link or a tag."""
    rows = [partition("city=a|b`<b>"), partition("city=c"), partition("city=d, [x](y)")]
    by = policies("/ KEEP_BY_COUNT 1 expireNullPartitions")
    text = expiry_markdown(expiry(*rows, by=by, fields=("city",)))
    assert "| `city=a¦b'<b>` |" in text
    held = expiry(*rows, by=by, fields=("city",), pending={"city=c": "20261129000000000"})
    assert "**Blocked**" in expiry_markdown(held)


def test_what_stays_against_expectation_is_told() -> None:
    """A partition that is older than a policy that loses is listed with the reason."""
    rows = [partition("city=a", modified="20260101000000000"), partition("city=b")]
    by = policies("default / KEEP_BY_TIME 30", "city=a/ KEEP_BY_TIME 365")
    text = expiry_markdown(expiry(*rows, by=by, fields=("city",)))
    assert "**Kept, although one might expect otherwise**" in text
    assert "| `city=a` | 1 B | modified 333.0 days ago, kept 30 days, but" in text


def test_without_policies_it_says_so() -> None:
    """A table without a policy has no table of them."""
    assert "No policy: nothing can expire." in expiry_markdown(expiry(*ROWS, by=PolicySet(), fields=("city",)))


def test_a_name_can_not_look_like_another_one_nor_be_a_link() -> None:
    """Marks that turn the direction of writing are shown by their number; an address is text."""
    rows = [partition("city=\u202ea"), partition("city=\u202eb"), partition("city=https://x.example&lt;")]
    text = expiry_markdown(expiry(*rows, by=policies("/ KEEP_BY_COUNT 1"), fields=("city",)))
    assert "| `city=U+202Ea` |" in text
    assert "\u202e" not in text
    assert "'city=https:\\//x.example\\&lt;'" in text


def test_policies_and_warnings_are_bounded_as_well() -> None:
    """Ten thousand policies, or holds that hold nothing, do not make the text longer than anybody reads."""
    by = policies("default / KEEP_BY_COUNT 1", *(f"city=x{number}/ KEEP_BY_TIME 9" for number in range(100)))
    guards = ExpiryGuards(legal_hold=tuple(f"city=y{number}" for number in range(100)))
    plan = expiry(*ROWS, by=by, fields=("city",), guards=guards)
    text = expiry_markdown(plan, max_rows=3)
    assert "… and 98 more policies" in text
    assert "KEEP\\_BY\\_COUNT 1 on / (default)" in text
    assert 3 == sum(line.startswith("- ") for line in text.splitlines())
    assert any("80 more of what is protected or held" in warning for warning in plan.warnings)
