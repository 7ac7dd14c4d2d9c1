"""The report as text, JUnit and GitHub annotations: errors first, valid whatever a message holds."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.findings import Finding
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.report import Report

# What the JUnit schema of Jenkins (junit-10.xsd) allows: {element: (attributes, children)}.
SCHEMA = {
    "testsuite": ({"name", "tests", "failures", "errors", "skipped", "time"}, {"testcase"}),
    "testcase": ({"name", "classname", "time"}, {"failure", "system-out"}),
    "failure": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}
NASTY = 'a "b" <c> & 100%, d: e\r\nf \x1b[31m\x00 ☃ ]]>'


def report(*findings):
    return Report("0.5.23", "annotated", "static", "ok", findings=findings)


def finding(level, code="SGA210", **more):
    return Finding(code, level, more.pop("message", "something"), **more)


def test_errors_stand_before_advice_and_that_before_the_rest():
    found = [finding(level) for level in ("info", "advice", "override", "error", "unknown", "deprecated")]
    text = report(*found).text()
    assert re.findall(r"^SGA210 (\w+):", text, re.MULTILINE) == ["error", "advice", "override", "deprecated", "unknown", "info"]


def test_an_accepted_error_no_longer_stands_first():
    accepted = finding("error", accepted={"code": "SGA210", "reason": "r"})
    assert report(accepted, finding("advice")).text().startswith("SGA210 advice")


def walk(element):
    attributes, children = SCHEMA[element.tag]
    assert set(element.attrib) <= attributes
    assert {one.tag for one in element} <= children
    for one in element:
        walk(one)


@pytest.mark.parametrize("found", [[], [finding("error", message=NASTY, flag=NASTY)], [finding("info"), finding("advice")]])
def test_junit_is_valid_and_counts_what_blocks(found):
    suite = ET.fromstring(report(*found).junit())
    walk(suite)
    assert suite.get("name")
    assert int(suite.get("tests")) == len(list(suite)) == max(len(found), 1)
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure")) == sum(one.blocks for one in found)
    assert {one.get("type") for one in suite.iter("failure")} <= {"error", "advice"}


def test_github_says_each_finding_on_one_line_and_where():
    one = finding("error", message=NASTY, source="srt/a,b:c.py:12", code="SGA301")
    lines = report(one, finding("info")).github().split("\n")
    assert len(lines) == 3
    assert lines[0].startswith("::error file=srt/a%2Cb%3Ac.py,line=12,title=SGA301::")
    assert "100%25" in lines[0]
    assert "%0D%0A" in lines[0]
    assert lines[1].startswith("::notice title=SGA210::")
