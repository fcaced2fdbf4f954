"""Replies of another model than was asked for, and prompts that an endpoint cuts."""

import pytest

from agrotools.agents.llm import LLMAgent
from agrotools.agents.modes import run_end_to_end
from agrotools.core import InfrastructureError, Usage
from agrotools.models import Completion, Message
from agrotools.models.chat_format import check_prompt, count_prompt, is_same_model
from agrotools.models.openai_compatible import OpenAICompatibleModel
from engine.models.test_adaptations import calls, said, turn
from support.openai_server import Body, serve
from support.small_sample import run_tool, small_sample, view_of


@pytest.mark.parametrize(
    ("asked", "served"),
    [
        ("gpt-4.1", "gpt-4.1-2025-04-14"), ("gpt-4", "gpt-4-0613"), ("mistral-large-latest", "mistral-large-2411"),
        ("openai/gpt-4o", "gpt-4o"), ("gemini-2.5-flash", "models/gemini-2.5-flash-preview-05-20"), ("m", "M"),
        ("claude-sonnet-4", "claude-sonnet-4@20250514"), ("llama3.2", "llama3.2:latest"),
        ("/models/qwen2.5-0.5b-instruct-q4_k_m.gguf", "qwen2.5-0.5b-instruct-q4_k_m.gguf"),
        ("Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M", "qwen2.5-7b-instruct-q4_k_m.gguf"), ("x:free", "vendor/x"),
        ("accounts/fireworks/models/llama-v3p1-8b-instruct", "llama-v3p1-8b-instruct"),
    ],
)  # fmt: skip
def test_dates_folders_and_quantisations_are_no_other_model(asked: str, served: str) -> None:
    assert is_same_model(asked, served)


@pytest.mark.parametrize(
    ("asked", "served"),
    [("gpt-4o", "gpt-4o-mini"), ("qwen2.5-7b", "qwen2.5-72b"), ("llama3.1", "llama3.2"), ("a", "local-model"),
     ("deepseek-chat", "deepseek-reasoner"), ("gemma-2-9b", "gemma-2-9b-abliterated"), ("o3", "o3-mini-2025-01-31")],
)  # fmt: skip
def test_another_size_version_or_name_is_another_model(asked: str, served: str) -> None:
    assert not is_same_model(asked, served)


@pytest.mark.process
async def test_another_model_is_named_once_and_recorded_with_its_provider(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    origin = {"model": "tiny", "provider": "Corner Shop", "system_fingerprint": "fp_1"}

    def reply(body: Body):
        return said(
            {"content": "rows: 7"} if turn(body) else {"content": "", "tool_calls": calls("a")},
            **origin,
        )

    async with serve(reply) as endpoint:
        model = OpenAICompatibleModel("large", base_url=endpoint.base_url)
        await run_end_to_end(
            LLMAgent(model, "end-to-end", "tool-calling"),
            view_of(small_sample(tmp_path), tmp_path),
            run_tool,
        )
        await model.close()
    assert model.stats.served == {kind: [name] for kind, name in origin.items()}
    assert model.stats.warnings == [
        f"warning: {endpoint.base_url} was asked for large and answers as tiny"
    ]


WORDS = "The rows of the field are counted from the west. "


@pytest.mark.parametrize(
    ("prompts", "is_cut"),
    [
        (((1000, 100),), False),
        (((250, 100),), False),  # a count of nothing
        (((0, 1000),), False),
        (((2050, 450),), True),
        (((2050, 380),), False),
        (((1200, 100), (2400, 200), (4096, 340)), False),
        (((4096, 340), (4096, 480)), True),
        (((4096, 340), (4096, 400)), False),  # another tokenizer may count so
        (((4000, 340), (4096, 380), (4000, 480)), True),
    ],
)
def test_a_prompt_is_cut_if_its_tokens_are_far_too_few_or_stay(prompts, is_cut: bool) -> None:
    counts = [
        count_prompt(
            [Message.of("user", WORDS * sentences)], Completion(usage=Usage(input_tokens=tokens))
        )
        for tokens, sentences in prompts
    ]
    for upto in range(1, len(counts)):
        check_prompt(counts[:upto])
    if is_cut:
        with pytest.raises(InfrastructureError, match="OLLAMA_CONTEXT_LENGTH"):
            check_prompt(counts)
    else:
        check_prompt(counts)


def test_reasoning_that_a_server_drops_later_is_no_cut() -> None:
    thought = Message("assistant", received={"content": "6", "reasoning_content": WORDS * 100})
    asked = [Message.of("user", WORDS * 100)]
    before = count_prompt([*asked, thought], Completion(usage=Usage(input_tokens=2500)))
    after = count_prompt(
        [*asked, thought, Message.of("user", WORDS * 60)],
        Completion(usage=Usage(input_tokens=2000)),
    )
    check_prompt([before, after])
