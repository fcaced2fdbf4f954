"""Paraphrases of a whole benchmark: what is accepted is kept beside what was, and nothing a model does can harm it."""

import json
import shutil
from pathlib import Path

import pytest
from aiohttp import web

from agrotools.benchmarks import load_folder
from agrotools.benchmarks.validate import validate_folder
from agrotools.build.assist.paraphrase import ParaphraseResult, paraphrase_folder, refusal, variants_of
from agrotools.models import WireSettings
from agrotools.models.endpoint import Endpoint, PricedModel, ScriptedModel, priced_model
from support.building_models import question_of, rewording
from support.caches import separate_cache
from support.fault_server import closed_port
from support.openai_server import Body, completion, error, serving

QUICK = WireSettings(attempts=2, first_wait_s=0.01, longest_wait_s=0.02, retry_wall_s=2)


@pytest.fixture
def folder(small_benchmark: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_benchmark, tmp_path / "benchmark"))


@pytest.fixture(autouse=True)
def _own_replies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    separate_cache(monkeypatch, tmp_path / "cache")


def reword(
    folder: Path, base_url: str, *, budget_usd: float | None = None, price: str | None = None
) -> ParaphraseResult:
    helper = priced_model(Endpoint("m", base_url, wire=QUICK, price=price, budget_usd=budget_usd))
    return paraphrase_folder(folder, helper, folder.parent / "spend.jsonl")


def test_questions_are_asked_in_the_words_of_the_model(folder: Path):
    before = {sample.id: sample for sample in load_folder(folder).samples}
    with serving(rewording) as endpoint:
        done = reword(folder, endpoint.base_url)
    assert (done.accepted, done.kept.total(), done.stopped) == (8, 0, None)
    assert done.refused.total() == 16
    assert done.refused["number"] > 0
    loaded = load_folder(folder)
    for sample in loaded.samples:
        old = before[sample.id]
        assert sample.query == f"For my records, {old.query[0].lower()}{old.query[1:]}"
        assert (sample.metadata["template_wording"], sample.metadata["paraphrased_by"]) == (old.query, "m")
        assert (sample.answer, sample.reference, sample.files) == (old.answer, old.reference, old.files)
        assert refusal(sample.query, old) is None
    assert validate_folder(folder) == []
    told = loaded.header.metadata["paraphrased"]
    assert isinstance(told, dict)
    assert told["accepted"] == 8


def test_no_gold_is_sent(folder: Path):
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    for line in lines:
        line["metadata"]["subject"] = line["template"] = "GOLDMARK"
        for step in line["reference"]["steps"]:
            step["truth"] = {"mark": "GOLDMARK"}
    (folder / "samples.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with serving(rewording) as endpoint:
        assert reword(folder, endpoint.base_url).accepted == 8
        assert len(endpoint.requests) == 8
        assert "GOLDMARK" not in json.dumps(endpoint.requests)
        for line in lines:
            for slot in line["answer"]:
                if slot["type"] == "tolerance":
                    assert str(slot["value"]) not in json.dumps(endpoint.requests)


def test_a_second_request_says_what_was_wrong(folder: Path):
    def hesitating(body: Body) -> web.Response:
        if len(body["messages"]) == 2:
            return completion(json.dumps({"variants": ["Please count 99 things for me in this picture, will you?"]}))
        assert "Please count 99" in body["messages"][3]["content"]
        return rewording(body)

    with serving(hesitating) as endpoint:
        assert reword(folder, endpoint.base_url).accepted == 8
        assert len(endpoint.requests) == 16


def test_no_two_questions_get_a_sentence_in_common(folder: Path):
    def same_greeting(body: Body) -> web.Response:
        question = question_of(body)
        return completion(json.dumps({"variants": [f"Good morning to you. Well, {question[0].lower()}{question[1:]}"]}))

    with serving(same_greeting) as endpoint:
        done = reword(folder, endpoint.base_url)
    assert done.accepted == 1
    assert done.refused["sentence"] > 0
    assert done.kept == {"no wording passed": 7}


def test_a_model_that_talks_nonsense_changes_nothing(folder: Path):
    replies = [
        "", "I cannot do that.", '{"variants": []}', '{"variants": [1, null, {}]}', '{"variants": ["a',
        "[[[[" * 500, '{"variants": ["\\ud800"]}', '{"variants": ["' + "x" * 100_000 + '"]}',
    ]  # fmt: skip
    before = (folder / "samples.jsonl").read_bytes()
    reply_to = dict(zip((sample.query for sample in load_folder(folder).samples), replies, strict=True))
    with serving(lambda body: completion(reply_to[question_of(body)])) as endpoint:
        done = reword(folder, endpoint.base_url)
    assert (done.accepted, done.stopped) == (0, None)
    assert set(done.kept) <= {"unreadable reply", "no wording passed"}
    assert done.kept.total() == 8
    assert (folder / "samples.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("status", "said"), [(500, "no reply"), (429, "no reply"), (401, "refuses the key"), (None, "")]
)
def test_a_server_that_fails_or_is_not_there_changes_nothing(folder: Path, status: int | None, said: str):
    before = (folder / "samples.jsonl").read_bytes()
    with serving(lambda _body: error(status or 500, "not today")) as endpoint:
        done = reword(folder, endpoint.base_url if status else f"http://127.0.0.1:{closed_port()}/v1")
    assert done.kept == {"no reply": 8}
    assert said in done.stopped.message
    assert (folder / "samples.jsonl").read_bytes() == before


def test_what_came_before_the_server_died_is_kept(folder: Path):
    asked = 0

    def dying(body: Body) -> web.Response:
        nonlocal asked
        asked += 1
        return rewording(body) if asked <= 3 else error(503, "gone")

    with serving(dying) as endpoint:
        done = reword(folder, endpoint.base_url)
    assert (done.accepted, done.kept) == (3, {"no reply": 5})
    assert done.stopped is not None
    assert validate_folder(folder) == []
    with serving(rewording) as endpoint:
        assert reword(folder, endpoint.base_url).accepted == 8, "the same folder can be gone on with"


def test_a_budget_is_kept(folder: Path):
    with serving(rewording) as endpoint:
        done = reword(folder, endpoint.base_url, budget_usd=1.05, price="500/10")
        assert 0 < len(endpoint.requests) < 8
    assert done.accepted == len(endpoint.requests)
    assert "are spent" in done.stopped.message


def test_a_scripted_model_can_help(folder: Path):
    def script(messages, _tools, _settings) -> str:
        question = json.loads(messages[1].text)["question"]
        return json.dumps([f"Well then, {question[0].lower()}{question[1:]}"])

    helper = PricedModel("scripted:s", ScriptedModel(script), None)
    assert paraphrase_folder(folder, helper, folder.parent / "spend.jsonl").accepted == 8
    assert not (folder.parent / "spend.jsonl").exists()


def test_wordings_are_found_in_what_models_write():
    assert variants_of('Sure! {"variants": ["a  b", "c", "c", ""]} Anything else?') == ["a b", "c"]
    assert variants_of("```json\n['a', 'b']\n```") == ["a", "b"]
    assert variants_of('{"thought": ["x"]} {"variants": ["y"]}') == ["y"]
    assert variants_of("none") == []
