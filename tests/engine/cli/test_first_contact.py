"""``agrotools eval`` meets its endpoint with a tiny request, and takes no refusal of one request for one of all."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web
from PIL import Image

from agrotools.cli import main
from support.openai_server import Body, completion, error, is_first_contact, serving, text_of
from support.plain_sample import plain_sample

pytestmark = pytest.mark.process

SAMPLES = 12
Respond = Callable[[Body], web.Response]


class Done(NamedTuple):
    """What a command left behind. ``finished`` and ``invalid`` are ids of samples by their last record."""

    code: int
    out: str
    err: str
    finished: set[str]
    invalid: dict[str, str]


class Server:
    """Keeps what it is sent; ``respond`` may be exchanged between two commands."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.contacts: list[Body] = []
        self.requests: list[Body] = []

    def __call__(self, body: Body) -> web.Response:
        (self.contacts if is_first_contact(body) else self.requests).append(body)
        return self.respond(body)


class Eval:
    """Runs ``agrotools eval`` in this process, as from the command line, on a benchmark of yes/no questions."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._capfd = capfd
        self.write_benchmark()

    def write_benchmark(
        self, *, picture: bool = False, modes: tuple[str, ...] = ("no-tool",)
    ) -> None:
        folder = self.folder / "benchmark"
        folder.mkdir(exist_ok=True)
        (folder / "benchmark.toml").write_text(
            f'name = "questions"\nversion = "1"\nlicence = "CC0-1.0"\ntoolset = ["calculate"]\nmodes = {[*modes]}\n'
        )
        Image.new("RGB", (80, 60), (30, 120, 40)).save(folder / "field.png")
        files = [{"name": "field.png", "path": "field.png", "kind": "image"}] if picture else []
        samples = [
            plain_sample(f"s{n}", query=f"Are there weeds on plot {n}?", toolset=("calculate",))
            for n in range(SAMPLES)
        ]
        lines = [
            json.dumps(
                sample.model_dump(mode="json", by_alias=True, exclude_none=True) | {"files": files}
            )
            for sample in samples
        ]
        (folder / "samples.jsonl").write_text("\n".join(lines))

    def __call__(self, base_url: str, *options: str) -> Done:
        (self.folder / "run.toml").write_text("attempts = 2\nretry_wall_s = 5.0\n")
        command = [
            "eval",
            "benchmark",
            "-m",
            "m",
            "--base-url",
            base_url,
            "--out",
            "run",
            "--config",
            "run.toml",
        ]
        return self.command(*command, *options)

    def command(self, *arguments: str) -> Done:
        self._monkeypatch.setattr("sys.argv", ["agrotools", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.main()
        captured = self._capfd.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        path = self.folder / "run" / "records.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        last = {record["sample"]["id"]: record["invalid"] for record in map(json.loads, lines)}
        finished = {name for name, invalid in last.items() if invalid is None}
        return Done(
            code,
            captured.out,
            captured.err,
            finished,
            {name: why for name, why in last.items() if why},
        )


@pytest.fixture
def evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Eval:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return Eval(tmp_path, monkeypatch, capfd)


def yes(_body: Body) -> web.Response:
    return completion("Final Answer: weeds: yes")


def refusing(what: Callable[[Body], bool], refusal: Callable[[], web.Response]) -> Respond:
    """Answers all requests but those for which ``what`` holds."""
    return lambda body: refusal() if what(body) else yes(body)


def blocked() -> web.Response:
    return error(403, "Request blocked by the firewall")


def wrong_key() -> web.Response:
    return error(401, "Incorrect API key provided")


def asks_of(plot: int) -> Callable[[Body], bool]:
    return lambda body: f"plot {plot}?" in text_of(body["messages"][-1])


def has_image(body: Body) -> bool:
    return any(
        part["type"] == "image_url"
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    )


def test_a_firewall_that_blocks_one_prompt_costs_that_sample_and_never_the_run(evaluated: Eval):
    server = Server(refusing(asks_of(3), blocked))
    with serving(server, greets=False) as api:
        for _ in range(3):
            done = evaluated(api.base_url)
            assert done.code == 1
            assert len(done.finished) == SAMPLES - 1
            assert list(done.invalid) == ["s3"]
            assert (
                "Request blocked by the firewall (other requests are answered)"
                in done.invalid["s3"]
            )
            assert "s3 (no-tool) is invalid: " in done.err
    assert len(server.requests) == 2 * (SAMPLES - 1) + 3


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_refusal_of_the_very_first_sample_ends_nothing(evaluated: Eval, status: int):
    server = Server(refusing(asks_of(0), lambda: error(status, "no such prompt")))
    with serving(server, greets=False) as api:
        done = evaluated(api.base_url, "--concurrency", "1")
    assert done.code == 1
    assert len(done.finished) == SAMPLES - 1
    assert "no such prompt" in done.invalid["s0"]


def test_where_the_first_contact_tells_nothing_one_refused_sample_is_no_refused_key(
    evaluated: Eval,
):
    def respond(body: Body) -> web.Response:
        if is_first_contact(body):
            return error(503, "loading the model")
        return blocked() if asks_of(0)(body) else yes(body)

    server = Server(respond)
    with serving(server, greets=False) as api:
        done = evaluated(api.base_url, "--concurrency", "1")
    assert done.code == 1
    assert list(done.invalid) == ["s0"]
    assert len(done.finished) == SAMPLES - 1


def test_where_the_first_contact_tells_nothing_two_samples_that_are_refused_alike_end_the_run(
    evaluated: Eval,
):
    server = Server(
        lambda body: error(503, "loading the model") if is_first_contact(body) else wrong_key()
    )
    with serving(server, greets=False) as api:
        done = evaluated(api.base_url, "--concurrency", "1")
    assert done.code == 2
    assert "refuses the key: Incorrect API key provided" in done.err
    assert len(server.requests) <= 3  # those in flight
    assert done.finished == set()


def test_what_a_resumed_run_has_got_before_counts_as_success(evaluated: Eval):
    server = Server(
        refusing(lambda body: asks_of(3)(body) or asks_of(5)(body), lambda: error(503, "busy"))
    )
    with serving(server, greets=False) as api:
        assert len(evaluated(api.base_url).finished) == SAMPLES - 2
        server.respond = lambda body: error(503, "busy") if is_first_contact(body) else blocked()
        done = evaluated(api.base_url, "--concurrency", "1")
    assert done.code == 1
    assert len(done.finished) == SAMPLES - 2
    assert {why.split(": ")[1] for why in done.invalid.values()} == {
        "Request blocked by the firewall (other requests are answered)"
    }


def test_a_refused_key_is_said_after_two_tiny_requests_and_nothing_is_recorded(evaluated: Eval):
    server = Server(lambda _body: wrong_key())
    with serving(server, greets=False) as api:
        done = evaluated(api.base_url)
    assert done.code == 2
    assert (
        f"{api.base_url} refuses the key: Incorrect API key provided\nhint: set the environment"
        in done.err
    )
    assert (done.out, done.finished, done.invalid) == ("", set(), {})
    assert (len(server.contacts), server.requests) == (2, [])
    first, second = server.contacts
    assert first["messages"][-1] != second["messages"][-1]
    assert first["max_tokens"] <= 16


def test_a_first_contact_that_alone_is_refused_ends_nothing(evaluated: Eval):
    server = Server(
        refusing(
            lambda body: body.get("max_tokens", 99) <= 16, lambda: error(400, "max_tokens too low")
        )
    )
    with serving(server, greets=False) as api:
        done = evaluated(api.base_url)
    assert done.code == 0
    assert len(done.finished) == SAMPLES
    assert len(server.contacts) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        (400, "At most 0 image(s) may be provided"),
        (404, "No endpoint for that input"),
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
    ],
)
def test_a_model_without_images_is_found_out_before_the_run(
    evaluated: Eval, refusal: tuple[int, str]
):
    evaluated.write_benchmark(picture=True)
    server = Server(refusing(has_image, lambda: error(*refusal)))
    with serving(server, greets=False) as api:
        done = evaluated(api.base_url)
        assert done.code == 2
        assert f"the model replies to text but takes no images: {api.base_url} " in done.err
        assert refusal[1] in done.err
        assert "hint: --no-images " in done.err
        assert (done.out, done.finished, done.invalid) == ("", set(), {})
        assert (len(server.contacts), server.requests) == (3, [])
        assert evaluated(api.base_url, "--no-images").code == 0


@pytest.mark.parametrize("picture", [False, True])
def test_a_model_without_tools_is_found_out_before_the_run(evaluated: Eval, picture: bool):
    evaluated.write_benchmark(picture=picture, modes=("no-tool", "end-to-end"))
    server = Server(
        refusing(lambda body: "tools" in body, lambda: error(400, "m was not made for this"))
    )
    with serving(server, greets=False) as api:
        done = evaluated(api.base_url, "--protocol", "tool-calling")
        assert done.code == 2
        assert "takes no tools: " in done.err
        assert "hint: --protocol react " in done.err
        assert server.requests == []
        assert len(server.contacts) <= 4
        assert evaluated(api.base_url, "--protocol", "react").code == 0


def test_one_tiny_request_holds_all_that_the_run_will_use(evaluated: Eval):
    evaluated.write_benchmark(picture=True, modes=("no-tool", "end-to-end"))
    server = Server(yes)
    with serving(server, greets=False) as api:
        assert evaluated(api.base_url, "--protocol", "tool-calling").code == 0
    (contact,) = server.contacts
    assert has_image(contact)
    assert len(contact["tools"]) == 1


def test_nothing_is_sent_where_nothing_is_to_be_asked(evaluated: Eval):
    server = Server(yes)
    with serving(server, greets=False) as api:
        assert evaluated(api.base_url, "--cache", "pilot").code == 0
        assert evaluated(api.base_url, "--cache", "pilot").code == 0  # complete
        (evaluated.folder / "run" / "records.jsonl").write_text("")
        assert evaluated(api.base_url, "--cache", "pilot").code == 0  # all in the cache
        (evaluated.folder / "run" / "records.jsonl").write_text("")
        assert (len(server.contacts), len(server.requests)) == (1, 2 * SAMPLES)
        assert evaluated(api.base_url).code == 0
    assert (len(server.contacts), len(server.requests)) == (2, 4 * SAMPLES)


def test_a_run_without_any_reply_is_one_line_and_goes_on_when_the_endpoint_is_back(evaluated: Eval):
    server = Server(lambda _body: error(503, "down for maintenance"))
    with serving(server, greets=False) as api:
        dead = evaluated(api.base_url, "--limit", "6")
        assert dead.code == 3
        assert dead.out == ""
        assert dead.err.count("down for maintenance") == 1
        assert "error: no sample got a reply: " in dead.err
        assert not (evaluated.folder / "run" / "report.html").exists()
        assert len(dead.invalid) == 6
        server.respond = yes
        done = evaluated(api.base_url, "--limit", "6")
    assert done.code == 0
    assert len(done.finished) == 6


def test_models_that_were_run_are_shown_where_a_later_one_is_refused(evaluated: Eval):
    server = Server(
        lambda body: yes(body) if body["model"] == "good" else error(404, "no such model")
    )
    with serving(server, greets=False) as api:
        done = evaluated.command(
            "eval", "benchmark", "-m", "good", "-m", "bad", "--base-url", api.base_url
        )
    assert done.code == 2
    assert "good" in done.out
    assert f"error: {api.base_url} has no model 'bad'" in done.err
