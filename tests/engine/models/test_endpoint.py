"""Providers by name, and what is sent to them."""

import json
from typing import Any

import pytest
from aiohttp import web

from agrotools.core import ToolSpec, UsageError
from agrotools.models import Endpoint, ImagePart, Message, ModelSettings, TextPart, make_model
from agrotools.models.base import RequestEncoder, request_body
from agrotools.models.endpoint import PROVIDERS, address_of, split_provider
from agrotools.models.openai_compatible import OpenAICompatibleModel
from agrotools.runner.config_file import read_config
from support.openai_server import SPEC, completion, serve

HELLO = [Message.of("user", "Hello")]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        if provider.key_env:
            monkeypatch.delenv(provider.key_env, raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def made(spec: str, **options: Any) -> OpenAICompatibleModel:
    model = make_model(Endpoint(spec, **options))
    assert isinstance(model, OpenAICompatibleModel)
    return model


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_is_an_address_and_asks_for_its_own_key(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = PROVIDERS[name]
    if provider.key_env:
        with pytest.raises(UsageError, match=f"{provider.key_env} is not set"):
            made(f"{name}:some/model")
        monkeypatch.setenv(provider.key_env, "a-key")
    model = made(f"{name}:some/model")
    assert (model.name, model.base_url) == (f"{name}:some/model", provider.base_url)


def test_a_colon_is_part_of_a_name_unless_a_provider_stands_before_it() -> None:
    assert split_provider("ollama:qwen2.5vl:7b") == (PROVIDERS["ollama"], "qwen2.5vl:7b")
    assert split_provider("gemini:gemini-2.5-flash") == (PROVIDERS["gemini"], "gemini-2.5-flash")
    home = "http://localhost:11434/v1"
    for spec in ("qwen2.5vl:7b", "llama3.2-vision", "ollama:"):
        assert split_provider(spec, home) == (None, spec)
    # Ollama's own name for a model of Mistral's is no model at Mistral's.
    for tag in ("7b", "latest", "7b-instruct-v0.3-q4_0", "v0.2", "instruct"):
        assert split_provider(f"mistral:{tag}", home) == (None, f"mistral:{tag}")
    assert split_provider("mistral:mistral-small-latest", home) == (
        PROVIDERS["mistral"],
        "mistral-small-latest",
    )


@pytest.mark.parametrize("spec", ["openai:", "ollama: "])
def test_a_provider_without_a_model_is_refused(spec: str) -> None:
    with pytest.raises(UsageError, match=f"{spec} names no model"):
        made(spec)
    with pytest.raises(UsageError, match=f"{spec} names no model"):
        read_config(None, {"benchmark": "no such benchmark"}, [spec])


def test_a_model_without_a_place_is_told_how_to_name_one() -> None:
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set") as caught:
        made("qwen2.5vl")
    assert "PROVIDER:qwen2.5vl" in (caught.value.hint or "")
    with pytest.raises(UsageError, match=r"unknown provider 'qwen2\.5vl'") as caught:
        made("qwen2.5vl:7b")
    assert "openai, openai-responses, gemini" in (caught.value.hint or "")
    with pytest.raises(UsageError) as caught:
        made("olama:qwen2.5vl:7b")
    assert "did you mean ollama:qwen2.5vl:7b?" in (caught.value.hint or "")


@pytest.mark.process
async def test_an_address_and_a_variable_stand_above_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROXY_KEY", "proxy-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    settings = ModelSettings(seed=3, max_output_tokens=7)
    async with serve(lambda _body: completion("ok")) as endpoint:
        for spec, variable in (
            ("gemini:gemini-x", None),
            ("mistral:mistral-x", "PROXY_KEY"),
            ("openai:gpt-x", None),
        ):
            model = make_model(Endpoint(spec, endpoint.base_url, variable))
            await model.generate(HELLO, (), settings)
            await model.close()
    gemini, mistral, openai = endpoint.requests
    assert (gemini["model"], "seed" in gemini, gemini["max_tokens"]) == ("gemini-x", False, 7)
    assert (mistral["random_seed"], "seed" in mistral) == (3, False)
    assert (openai["max_completion_tokens"], openai["seed"], "max_tokens" in openai) == (
        7,
        3,
        False,
    )
    assert [headers.get("Authorization") for headers in endpoint.headers] == [
        None,
        "Bearer proxy-key",
        None,
    ]


@pytest.mark.process
async def test_a_refused_key_names_the_provider_s_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "wrong")
    async with serve(
        lambda _body: web.json_response({"error": {"message": "no"}}, status=401)
    ) as endpoint:
        model = make_model(Endpoint("groq:m", endpoint.base_url))
        with pytest.raises(UsageError) as caught:
            await model.generate(HELLO, (), ModelSettings())
        await model.close()
    assert "GROQ_API_KEY" in (caught.value.hint or "")


def spec(name: str) -> ToolSpec:
    return SPEC.model_copy(update={"name": name, "description": 'Häufig "quoted"'})


def test_what_is_serialised_once_reads_as_what_is_serialised_anew() -> None:
    encoder = RequestEncoder("m", {})
    url = 'data:image/png;base64,AA=="\\\n\u20ac'
    messages = [
        Message(
            role="user",
            content=(TextPart(text="See ü"), ImagePart(url=url), ImagePart(url="data:,")),
        )
    ]
    settings = ModelSettings(extra={"top_k": 5})
    toolsets = [[spec("a"), spec("b")], [spec("b")], []]
    for _ in range(3):
        for tools in toolsets:
            sent = json.loads(encoder.encode(messages, tools, settings))
            assert sent == request_body("m", messages, tools, settings)


@pytest.mark.process
async def test_a_placeholder_for_a_key_is_no_secret_and_changes_no_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")

    async with serve(lambda _body: completion("an example of maximal text")) as endpoint:
        model = made("m", base_url=endpoint.base_url)
        reply = await model.generate([Message.of("user", "hello")], (), ModelSettings())
        await model.close()
    assert reply.text == "an example of maximal text"


def test_a_vendor_known_by_its_address_gets_its_own_key_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    gemini = PROVIDERS["gemini"].base_url
    with pytest.raises(UsageError, match="GEMINI_API_KEY"):
        made("gemini-2.5-flash", base_url=gemini)
    monkeypatch.setenv("GEMINI_API_KEY", "of-gemini")
    assert made("gemini-2.5-flash", base_url=gemini)._endpoint.key == "of-gemini"


@pytest.mark.parametrize("given", ["sk-proj-0123456789abcdef", "0123456789abcdef", "my key"])
def test_a_key_given_as_the_name_of_its_variable_is_not_shown(given):
    with pytest.raises(UsageError, match="may be the key itself") as caught:
        address_of("m", None, "http://127.0.0.1:1/v1", given)
    assert given not in f"{caught.value} {caught.value.hint}"
