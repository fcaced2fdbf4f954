"""The examples of docs/published.md run as they stand."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "published.md"


def test_the_examples_run_and_print_what_the_page_is_about(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 2
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert printed.startswith("Qwen-Plus 63.21 % 14490 ")
    assert "arxiv.org/abs/2507.21773" in printed
    assert "AgriEval, Table 14. Accuracy by question format" in printed
    by_number = {table.layout.number: table for table in names["tables"]}
    assert [column.code for column in by_number["8"].columns] == ["PP", "Fore", "Overall"]
    assert [column.code for column in by_number["7"].columns] == ["M-P", "Overall"]
