"""The code of the README runs and prints what the README says.

Runs under pytest, and as a script in an environment that has nothing but the installed wheel:
hence no import beyond the standard library.
"""

import doctest
import re
import time
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def python_blocks(text):
    """Return the fenced python blocks of a Markdown text, in order."""
    return re.findall(r"^```(?:python|pycon)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def run(blocks):
    """Run the blocks as one session and return the number of failures and of examples."""
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, README.name, str(README), 0)
    return doctest.DocTestRunner(optionflags=FLAGS).run(test)


def test_readme_shows_code():
    assert python_blocks(README.read_text(encoding="utf-8"))


def test_every_readme_block_is_a_session_with_its_output():
    for block in python_blocks(README.read_text(encoding="utf-8")):
        assert block.startswith(">>> ")


def test_readme_code_prints_what_it_says():
    assert run(python_blocks(README.read_text(encoding="utf-8"))).failed == 0


def test_first_block_takes_about_a_second():
    first = python_blocks(README.read_text(encoding="utf-8"))[:1]
    run(first)
    seconds = []
    for _ in range(3):
        # Processor time: what else runs on the machine is not the matter of the README.
        start = time.process_time()
        run(first)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 1.0


if __name__ == "__main__":
    test_readme_shows_code()
    test_every_readme_block_is_a_session_with_its_output()
    test_readme_code_prints_what_it_says()
    test_first_block_takes_about_a_second()
