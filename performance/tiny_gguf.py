"""A language model of less than a megabyte in llama's architecture, as a GGUF file, for servers that nobody here wrote.

Tool of developers: the model of ``foreign_servers.py`` and of ``tests/engine/runner/test_llama_server.py``.

    python performance/tiny_gguf.py model.gguf
    python performance/tiny_gguf.py model.gguf --port 8080 --context 1024
    python performance/tiny_gguf.py mmproj.gguf --vision

It looks at one token only, the last one of the prompt, which the chat template chooses by what is asked (an answer, a
call in either protocol, what follows a result), and draws one of the replies that real models make: right, malformed,
empty, or babble without an end. At temperature 0 it is always the right one. Its vision part, a second file with random
weights in pixtral's architecture, turns pictures into tokens of which the reply takes no notice: one for each patch of
64 x 64 pixels and one for each row of them. Needs ``gguf`` and ``numpy``; with a port
it is served by llama.cpp's own server, out of ``xllamacpp``.
"""

import argparse
import re
import time
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
from gguf import GGUFWriter, TokenType

_SOURCE = Path(__file__).resolve().parents[1] / "src"
_TEXTS = (
    *_SOURCE.glob("agrotools/agents/prompts/*.j2"),
    _SOURCE / "agrotools_tools" / "general" / "calculate.py",
)
"""Of what words prompts are made."""
EMBEDDING = 64
CONTEXT = 8192
PATCH_PX = 64
"""Edge of what becomes one token of a picture: large, so that pictures of usual sizes fit the context."""
_WORD = re.compile(r" ?[A-Za-z]+| ?\d+| ?[^\sA-Za-z\d]+|\s+")
END = "<|im_end|>"

_ANSWER = "mean: 3.77 t/ha"
_CALL = '{"name": "calculate", "arguments": {"expression": "(3.0 + 4.5) / 2"}}'
_BABBLE = "It is"
REPLIES: Mapping[str, Mapping[str, float]] = {
    "<|plain|>": {
        _ANSWER: 6,
        "The mean is about 3.77 t/ha.": 1,
        "mean: 9 t/ha": 1,
        "": 1,
        _BABBLE: 1,
    },
    "<|react|>": {
        'Thought: I add.\nAction: calculate\nAction Input: {"expression": "(3.0 + 4.5) / 2"}': 6,
        "Thought: Done.\nFinal Answer: mean: 3.77 t/ha": 1,
        'Action: calculate\nAction Input: {"expression": "(3.0 +': 1,
        'Action: weigh_trees\nAction Input: {"trees": 3}': 1,
        "": 1,
        _BABBLE: 1,
    },
    "<|native|>": {
        f"<tool_call>\n{_CALL}\n</tool_call>": 6,
        f"{_ANSWER}\n": 1,
        '<tool_call>\n{"name": "calculate", "arguments": {"expr': 1,
        '<tool_call>\n{"name": "weigh_trees", "arguments": {}}\n</tool_call>': 1,
        "<tool_call>\nnonsense\n</tool_call>": 1,
        "": 1,
        _BABBLE: 1,
    },
    "<|then_react|>": {"Thought: That is it.\nFinal Answer: mean: 3.77 t/ha": 6, "": 1, _BABBLE: 1},
    "<|then_native|>": {f"The result settles it.\n{_ANSWER}": 6, "": 1, _BABBLE: 1},
}
"""What may follow which last token of the prompt, and how often."""

TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}

{% endif %}# Tools

You may call one or more functions. They are described within <tools></tools>:
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif not (tools and loop.first and message.role == 'system') %}<|im_start|>{{ message.role }}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if messages[-1].role == 'tool' %}<|then_native|>
{%- elif tools %}<|native|>
{%- elif 'Action Input' in (messages[0].content | string) %}
{%- if '<observation>' in (messages[-1].content | string) %}<|then_react|>{% else %}<|react|>{% endif %}
{%- else %}<|plain|>{% endif %}
{%- endif %}"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--vision", action="store_true", help="write the vision part")
    parser.add_argument("--port", type=int, help="write nothing, serve the file there")
    parser.add_argument("--context", type=int, default=1024, help="tokens of one conversation")
    parser.add_argument("--slots", type=int, default=2, help="conversations at once")
    parser.add_argument("--key", help="the key that clients have to send")
    options = parser.parse_args()
    if options.port:
        serve(options.file, options.port, options.context, options.slots, options.key)
    elif options.vision:
        write_vision(options.file)
    else:
        write_model(options.file)


def serve(file: Path, port: int, context: int, slots: int, key: str | None) -> None:
    """Serve ``file`` until the process is ended."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.model_alias = {"tiny"}
    params.port, params.n_ctx, params.n_parallel = port, context * slots, slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    if key:
        params.api_keys = [key]
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)


def write_model(file: Path) -> None:
    """Write the model to ``file``."""
    merges = _merges("\n".join(path.read_text("utf-8") for path in sorted(_TEXTS)))
    phrases = sorted(
        {_spelled(phrase) for replies in REPLIES.values() for phrase in replies if phrase}
    )
    pieces = list(
        dict.fromkeys([*map(chr, sorted(_BYTES.values(), key=int)), *map("".join, merges)])
    )
    controls = [END, "<|im_start|>", *REPLIES]
    tokens = [*pieces, *(phrase for phrase in phrases if phrase not in pieces), *controls]
    kinds = [TokenType.CONTROL if token in controls else TokenType.NORMAL for token in tokens]
    writer = GGUFWriter(file, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(1)
    writer.add_feed_forward_length(EMBEDDING)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(EMBEDDING // 2)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(tokens.index("<|im_start|>"))
    writer.add_eos_token_id(tokens.index(END))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    embeddings, output = _weights(tokens)
    writer.add_tensor("token_embd.weight", embeddings)
    writer.add_tensor("output.weight", output)
    writer.add_tensor("output_norm.weight", np.ones(EMBEDDING, np.float32))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones(EMBEDDING, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        # Nothing is added to what the last token is.
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros((EMBEDDING, EMBEDDING), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_vision(file: Path) -> None:
    """Write the part that sees pictures to ``file``, for ``--mmproj`` of llama.cpp's server."""
    draw = np.random.default_rng(2)

    def weights(*shape: int) -> np.ndarray:
        return draw.normal(0, 0.05, shape).astype(np.float32)

    writer = GGUFWriter(file, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "pixtral")
    writer.add_bool("clip.use_silu", True)
    sizes = {
        "image_size": 1024,
        "patch_size": PATCH_PX,
        "embedding_length": EMBEDDING,
        "feed_forward_length": EMBEDDING,
        "projection_dim": EMBEDDING,
        "block_count": 1,
        "spatial_merge_size": 1,
        "attention.head_count": 2,
    }
    for name, size in sizes.items():
        writer.add_uint32(f"clip.vision.{name}", size)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    writer.add_array("clip.vision.image_mean", [0.5] * 3)
    writer.add_array("clip.vision.image_std", [0.5] * 3)
    writer.add_tensor("v.patch_embd.weight", weights(EMBEDDING, 3, PATCH_PX, PATCH_PX))
    writer.add_tensor("v.token_embd.img_break", weights(EMBEDDING))
    for name in ("v.pre_ln", "v.blk.0.ln1", "v.blk.0.ln2"):
        writer.add_tensor(f"{name}.weight", np.ones(EMBEDDING, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_out", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"v.blk.0.{name}.weight", weights(EMBEDDING, EMBEDDING))
    for layer in (1, 2):
        writer.add_tensor(f"mm.{layer}.weight", weights(EMBEDDING, EMBEDDING))
        writer.add_tensor(f"mm.{layer}.bias", weights(EMBEDDING))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _weights(tokens: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings, one direction for each state, and for each state the logits of what follows it."""
    number = {token: index for index, token in enumerate(tokens)}
    states = [
        *REPLIES,
        *sorted(
            {_spelled(p) for replies in REPLIES.values() for p in replies if p and p != _BABBLE}
        ),
    ]
    babble = EMBEDDING - 1
    embeddings = np.zeros((len(tokens), EMBEDDING), np.float32)
    embeddings[:, babble] = 1
    logits = np.full((len(tokens), EMBEDDING), -30.0, np.float32)
    for state, name in enumerate(states):
        embeddings[number[name]] = 0
        embeddings[number[name], state] = 1
        for phrase, weight in REPLIES.get(name, {"": 1}).items():
            logits[number[_spelled(phrase) if phrase else END], state] = np.log(weight)
    logits[:, babble] = np.random.default_rng(1).normal(0, 1, len(tokens))
    # Neither an end nor whole phrases are among what babble goes on with.
    logits[[number[token] for token in (*states, END, "<|im_start|>")], babble] = -30.0
    # A normalised vector of one direction has the length sqrt(EMBEDDING).
    return embeddings, logits / np.sqrt(EMBEDDING).astype(np.float32)


def _byte_letters() -> dict[int, int]:
    """GPT-2's letters for bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: byte for byte in plain} | {byte: 256 + place for place, byte in enumerate(others)}


_BYTES = _byte_letters()


def _spelled(text: str) -> str:
    return "".join(chr(_BYTES[byte]) for byte in text.encode())


def _merges(text: str) -> list[tuple[str, str]]:
    """The pairs that byte-pair encoding joins, most frequent first."""
    words = {tuple(_spelled(word)): count for word, count in Counter(_WORD.findall(text)).items()}
    merges: list[tuple[str, str]] = []
    while True:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        if not pairs:
            return merges
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        words = {_joined(word, best): count for word, count in words.items()}


def _joined(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    joined: list[str] = []
    for letter in word:
        if joined and (joined[-1], letter) == pair:
            joined[-1] += letter
        else:
            joined.append(letter)
    return tuple(joined)


if __name__ == "__main__":
    main()
