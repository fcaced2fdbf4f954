"""The scripted model: replies from files and callables."""

import json
from pathlib import Path

import pytest

from agrotools.core import UsageError
from agrotools.models import Completion, Endpoint, Message, ModelSettings, make_model

TOML = """
[[scenes]]
when = "weeds"
replies = [
    "Action: calculate\\nAction Input: {\\"expression\\": \\"1+1\\"}",
    { text = "", tool_calls = [{ name = "calculate", arguments = { expression = "2+2" } }] },
    "Final Answer: 4",
]
[[scenes]]
replies = ["Final Answer: none"]
"""


async def replies(model_spec: str, question: str, turns: int) -> list[Completion]:
    model = make_model(Endpoint(model_spec))
    conversation = [Message.of("system", "weeds"), Message.of("user", question)]
    given: list[Completion] = []
    for _ in range(turns):
        given.append(await model.generate(conversation, (), ModelSettings()))
        conversation += [Message.of("assistant", "..."), Message.of("user", "go on")]
    await model.close()
    return given


async def test_a_toml_script_gives_replies_by_question_and_turn(tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text(TOML)
    first, second, third, fourth = await replies(f"scripted:{script}", "How many weeds?", 4)
    assert first.text.startswith("Action: calculate")
    assert [(call.name, json.loads(call.arguments)) for call in second.tool_calls] == [
        ("calculate", {"expression": "2+2"})
    ]
    assert second.finish_reason == "tool_calls"
    assert third.text == fourth.text == "Final Answer: 4"
    assert [reply.text for reply in await replies(f"scripted:{script}", "Other?", 1)] == [
        "Final Answer: none"
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '["one", "two"]'),
        ("b.json", '[{"replies": ["one", "two"]}]'),
        ("c.jsonl", '"one"\n\n"two"\n'),
        ("d.jsonl", '{"when": "Q", "replies": [{"text": "one"}, "two"]}\n'),
    ],
)
async def test_json_and_jsonl_scripts_are_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert [reply.text for reply in await replies(f"scripted:{tmp_path / name}", "Q?", 2)] == [
        "one",
        "two",
    ]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.json", "{", "cannot read"),
        ("x.json", '{"a": 1}', "no scenes"),
        ("x.json", '[{"replies": []}]', "replies"),
        ("x.json", '[{"replies": ["a"], "wen": "b"}]', "wen"),
        ("x.jsonl", "\xff\xfd", "cannot read"),
    ],
)
def test_a_broken_script_is_a_usage_error(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match=said):
        make_model(Endpoint(f"scripted:{tmp_path / name}"))


async def test_a_missing_script_a_missing_name_and_a_missing_scene_are_usage_errors(
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        make_model(Endpoint(f"scripted:{tmp_path / 'none.json'}"))
    with pytest.raises(UsageError, match="no name"):
        make_model(Endpoint(" "))
    (tmp_path / "s.json").write_text('[{"when": "weeds", "replies": ["a"]}]')
    with pytest.raises(UsageError, match="no scene"):
        await replies(f"scripted:{tmp_path / 's.json'}", "pests?", 1)
