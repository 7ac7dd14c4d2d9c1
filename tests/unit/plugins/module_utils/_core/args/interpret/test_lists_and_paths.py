# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lists that are one of a few, texts and paths made from values: what a release collects before it refuses."""

from __future__ import annotations

import pytest

ERRORS = """
    errors = []
    if get_device_sm() > 90:
        errors.append("not on these cards")
    {more}
    if errors:
        raise ValueError("; ".join(errors))
"""


@pytest.mark.parametrize(
    ("more", "outcome"), [("pass", "unknown"), ("errors.append('never')", "fatal"), ("errors.extend(['one', 'two'])", "fatal")]
)
def test_errors_collected_in_a_list_refuse_whatever_the_open_one_is(run, more, outcome):
    """expert_pack of 0.5.19 and later collects its errors, some of which hang on the host, and refuses at the end."""
    result = run(ERRORS.format(more=more))
    assert result.outcome == outcome


def test_a_list_emptied_on_every_way_refuses_nothing(run):
    result = run(
        """
        errors = []
        if get_device_sm() > 90:
            errors.append("not on these cards")
        errors.clear()
        if errors:
            raise ValueError("; ".join(errors))
        """
    )
    assert result.outcome == "ok"


@pytest.mark.parametrize(("value", "said"), [("[]", "list"), ("{}", "dict"), ("1", "int"), ("'a'", "str")])
def test_the_type_of_a_value_is_written_as_python_writes_it(run, value, said):
    """``mm_process_config must be a dict, but got <class 'list'>``: executed on 0.5.12."""
    result = run(f'raise ValueError(f"must be a tuple, but got {{type({value})}}")')
    assert result.message == f"must be a tuple, but got <class '{said}'>"


@pytest.mark.parametrize(("value", "said"), [("None", "NoneType"), ("3", "int"), ("[]", "list")])
def test_a_path_of_what_is_no_text_is_refused_as_pathlib_does(run, value, said):
    result = run(f"from pathlib import Path\nPath({value})")
    assert result.outcome == "fatal"
    assert said in result.message and "os.PathLike" in result.message


def test_a_path_stays_known_when_a_home_folder_would_be_put_in(run):
    """expert_pack of 0.5.19 asks ``Path(model).expanduser()`` for its name and whether it is a file."""
    result = run(
        """
        from pathlib import Path
        self.pp_size = 2 if Path("/m/kimi.gguf").expanduser().suffix == ".gguf" else 1
        """
    )
    assert result.effective["pp_size"] == 2
