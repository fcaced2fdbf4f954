"""The faults of endpoints, proxies and our own settings that ``faults.py`` tries, and what may become of each.

Part of ``faults.py``.

Bodies are worded as vendors and proxies word them. No sample that meets such a fault may count against the model; the
rows that expect ``result`` show that what *is* the model's stays so.
"""

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from fault_endpoint import (
    Act,
    Meets,
    Request,
    always,
    arriving,
    asked_about,
    asking_tokens,
    asleep,
    at_turn,
    bomb,
    calls,
    changed,
    counting,
    crowded,
    cut,
    forbidding,
    go_away,
    go_away_shortly,
    good,
    hang_up,
    holding,
    holding_text,
    hung,
    late,
    message,
    pieces,
    queued,
    raw,
    replayed,
    reset,
    says,
    stalled,
    text,
    tried,
    until,
    windowed,
)

SAMPLES = 12
EVERYONE = frozenset(range(SAMPLES))


@dataclass(frozen=True)
class Expected:
    """What may become of a run. ``outcomes``: of the samples that meet the fault; all others must be right."""

    outcomes: frozenset[str]
    exits: frozenset[int] = frozenset({0, 1, 2, 3})
    at_once: bool = False
    """The run ends at its first contact: no table, and no more requests than there are samples."""
    warns: bool = False
    """A line says ``warning`` or ``error``."""


def _expected(outcomes: str, *exits: int, **more: bool) -> Expected:
    return Expected(frozenset(outcomes.split()), frozenset(exits or (0, 1, 2, 3)), **more)


RIGHT = _expected("right", 0)
INVALID = _expected("invalid missing", 1, 2, 3, warns=True)
REFUSED = _expected("invalid missing", 2, 3, at_once=True, warns=True)
MENDED = _expected("right invalid missing")
"""Got over, invalid, or refused: all but counted against the model."""
WARNED = _expected(
    "right wrong invalid missing length filtered context unparseable timeout max_steps",
    3,
    warns=True,
)
TOLD = replace(WARNED, exits=MENDED.exits)
"""It may be the model, so nothing more than a line is asked for."""


def _result(outcomes: str) -> Expected:
    """The model's own end. It may also be left out, never be taken for right."""
    return _expected(outcomes)


@dataclass(frozen=True)
class Fault:
    """One row. ``met``: the samples that may suffer; ``options``: keys of the run's config file."""

    name: str
    act: Act
    expected: Expected
    meets: Meets = always
    met: frozenset[int] = EVERYONE
    mode: str = "no-tool"
    protocol: str = "react"
    options: Mapping[str, Any] = field(default_factory=dict)
    pictures: bool = False
    address: Callable[[str], str] = str
    """From the address of the endpoint to the one that the run is given."""
    limit_s: float = 20.0
    """Slow above this."""


_ROWS: list[Fault] = []


def _row(name: str, act: Act, expected: Expected, meets: Meets = always, **more: Any) -> None:
    _ROWS.append(Fault(name, act, expected, meets, **more))


def _rows(expected: Expected, rows: Mapping[str, Act], meets: Meets = always, **more: Any) -> None:
    for name, act in rows.items():
        _row(name, act, expected, meets, **more)


def _alone(sample: int) -> dict[str, Any]:
    """For a fault of one sample's prompt."""
    return {"meets": asked_about(sample), "met": frozenset({sample})}


def _error(
    told: str, code: Any = None, kind: str = "invalid_request_error", **more: Any
) -> dict[str, Any]:
    return {"error": {"message": told, "type": kind, "param": None, "code": code, **more}}


def _html(title: str, rest: str = "") -> str:
    return f"<html><head><title>{title}</title></head><body><center><h1>{title}</h1></center><hr>{rest}</body></html>"


_NATIVE = {"mode": "end-to-end", "protocol": "tool-calling"}
_REACT = {"mode": "end-to-end", "protocol": "react"}

# --- keys, names, credit, what the model cannot do: told at once -----------------------------------------------------

_rows(REFUSED, {
    "key_401_openai": says(401, _error("Incorrect API key provided: sk-abc. You can find your key at ...", "invalid_api_key")),
    "key_401_anthropic": says(401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
    "key_400_gemini": says(400, [{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}]),
    "key_401_openrouter": says(401, {"error": {"message": "No auth credentials found", "code": 401}}),
    "key_401_vllm": says(401, {"error": "Unauthorized"}),
    "key_401_litellm": says(401, _error("Authentication Error, Invalid proxy server token passed. Unable to find token in cache or `LiteLLM_VerificationTokenTable`", "401", "token_not_found_in_db")),
    "key_400_litellm_no_database": says(400, _error("No connected db.", "400", "no_db_connection")),
    "key_403_project": says(403, _error("Project `proj_x` does not have access to model `gpt-x`", "model_not_found")),
    "key_403_gemini": says(403, [{"error": {"code": 403, "message": "Generative Language API has not been used in project 1 before or it is disabled.", "status": "PERMISSION_DENIED"}}]),
    "key_401_empty": says(401),
    "key_401_nginx": says(401, _html("401 Authorization Required", "nginx")),
    "key_407_proxy": says(407, _html("407 Proxy Authentication Required", "squid")),
    "key_403_cloudflare": says(403, _html("Attention Required! | Cloudflare", "You have been flagged. Sorry, you have been blocked")),
    "key_403_waf_content_policy": says(403, _html("Access denied", "This request was blocked by the content policy of your network (content filter)")),
    "region_403_openai": says(403, _error("Country, region, or territory not supported", "unsupported_country_region_territory", "request_forbidden")),
    "no_model_404_openai": says(404, _error("The model `m` does not exist or you do not have access to it.", "model_not_found")),
    "no_model_404_vllm": says(404, {"object": "error", "message": "The model `m` does not exist.", "type": "NotFoundError", "param": None, "code": 404}),
    "no_model_404_ollama": says(404, _error('model "m" not found, try pulling it first', None, "api_error")),
    "no_model_400_litellm": says(400, _error("/chat/completions: Invalid model name passed in model=m. Call `/v1/models` to view available models for your key.", "400")),
    "no_model_400_deepseek": says(400, _error("Model Not Exist", "invalid_request_error")),
    "no_model_400_openrouter": says(400, {"error": {"message": "m is not a valid model ID", "code": 400}}),
    "no_model_503_one_api": says(503, _error("no available channel for model m under the current group default (distributor)", "model_not_found", "new_api_error")),
    "path_404_html": says(404, _html("404 Not Found", "nginx")),
    "path_404_fastapi": says(404, {"detail": "Not Found"}),
    "path_405": says(405, {"detail": "Method Not Allowed"}),
    "redirect_302_login": says(302, b"", Location="https://login.example.org/"),
    "redirect_308_https": says(308, b"", Location="https://127.0.0.1/v1/chat/completions"),
    "credit_402_deepseek": says(402, _error("Insufficient Balance", "invalid_request_error", "unknown_error")),
    "credit_402_openrouter": says(402, {"error": {"message": "Insufficient credits. Add more using https://openrouter.ai/settings/credits", "code": 402}}),
    "credit_429_openai": says(429, _error("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota", "insufficient_quota")),
    "credit_400_anthropic": says(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the Anthropic API."}}),
    "credit_400_dashscope": says(400, _error("Access denied, please make sure your account is in good standing.", "Arrearage", "Arrearage")),
    "credit_429_zhipu": says(429, {"error": {"code": "1113", "message": "您的账户已欠费，请充值后重试。"}}),
    "credit_429_moonshot": says(429, _error("Your account is not active, current state: exceeded_current_quota, please check your plan and billing", None, "exceeded_current_quota_error")),
    "budget_400_litellm": says(400, _error("Budget has been exceeded! Current cost: 10.2, Max budget: 10.0", "400", "budget_exceeded")),
    "no_system_role_400": says(400, _error("System role not supported")),
})  # fmt: skip
_row(
    "key_refused_before_body",
    raw(lambda _r: b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
    REFUSED,
)
_rows(REFUSED, {
    "no_images_400_openai": says(400, _error("Invalid content type. image_url is only supported by certain models.", "invalid_value")),
    "no_images_400_vllm": says(400, {"object": "error", "message": "m is not a multimodal model", "type": "BadRequestError", "param": None, "code": 400}),
    "no_images_400_vllm_limit": says(400, {"object": "error", "message": "At most 0 image(s) may be provided in one prompt.", "type": "BadRequestError", "code": 400}),
    "no_images_500_llamacpp": says(500, {"error": {"code": 500, "message": "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "type": "server_error"}}),
    "no_images_500_litellm": says(500, _error("litellm.InternalServerError: InternalServerError: OpenAIException - image input is not supported - hint: if this is unexpected, you may need to provide the mmproj\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted.", "500", "internal_server_error")),
    "no_images_422_deepseek": says(422, "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text`"),
    "no_images_404_openrouter": says(404, {"error": {"message": "No endpoints found that support image input", "code": 404}}),
}, holding_text("image_url"), pictures=True)  # fmt: skip
_rows(REFUSED, {
    "no_tools_400_vllm": says(400, {"object": "error", "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', "type": "BadRequestError", "code": 400}),
    "no_tools_400_ollama": says(400, _error("registry.ollama.ai/library/m:2b does not support tools", None, "api_error")),
    "no_tools_404_openrouter": says(404, {"error": {"message": "No endpoints found that support tool use. To learn more about provider routing, visit ...", "code": 404}}),
    "no_tools_500_llamacpp": says(500, {"error": {"code": 500, "message": "tools param requires --jinja flag", "type": "server_error"}}),
}, holding("tools"), **_NATIVE)  # fmt: skip
_row("tools_ignored_template", says(500, {"error": {"code": 500, "message": "Value is not callable: null at row 1, column 1", "type": "server_error"}}), INVALID, at_turn(1), **_NATIVE)  # fmt: skip
_row("roles_must_alternate_400", says(400, _error("Conversation roles must alternate user/assistant/user/assistant/...", 400, "BadRequestError")), MENDED, at_turn(1), **_REACT)  # fmt: skip
_row("closed_port", good, REFUSED, address=lambda _url: "http://127.0.0.1:9/v1")
_row("unknown_host", good, REFUSED, address=lambda _url: "http://no-such-host.invalid/v1")
_row("tls_to_plain_http", good, REFUSED, address=lambda url: url.replace("http:", "https:"))

# --- our own settings ------------------------------------------------------------------------------------------------

_rows(MENDED, {
    "max_tokens_400_openai": says(400, _error("max_tokens is too large: 4096. This model supports at most 2048 completion tokens, whereas you provided 4096.", "invalid_value")),
    "max_tokens_400_groq": says(400, _error("`max_tokens` must be less than or equal to `2048`, the maximum value for `max_tokens` is less than the `context_window` for this model")),
    "max_tokens_400_dashscope": says(400, _error("Range of max_tokens should be [1, 2048]", "invalid_parameter_error")),
    "max_tokens_400_anthropic": says(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "max_tokens: 4096 > 2048, which is the maximum allowed number of output tokens for m"}}),
}, asking_tokens(2048))  # fmt: skip
_rows(MENDED, {
    "max_tokens_400_vllm": says(400, {"object": "error", "message": "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your request has 120 input tokens (4096 > 4096 - 120). None", "type": "BadRequestError", "code": 400}),
    "max_tokens_400_vllm_older": says(400, {"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested 4216 tokens (120 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.", "type": "BadRequestError", "code": 400}),
    "max_tokens_400_sglang": says(400, {"object": "error", "message": "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 4216 tokens: 120 tokens from the input messages and 4096 tokens for the completion.", "type": "BadRequestError", "code": 400}),
    "max_tokens_422_tgi": says(422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 120 `inputs` tokens and 4096 `max_new_tokens`", "error_type": "validation"}),
    "max_tokens_400_claude": says(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit: 120 + 4096 > 4096, decrease input length or `max_tokens` and try again"}}),
    "max_tokens_400_litellm": says(400, _error("litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - This model's maximum context length is 4096 tokens. However, you requested 4216 tokens (120 in the messages, 4096 in the completion). Received Model Group=m", "400", None)),
}, asking_tokens(3976))  # fmt: skip
_row(
    "max_tokens_renamed_400",
    says(
        400,
        _error(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "unsupported_parameter",
        ),
    ),
    RIGHT,
    holding("max_tokens"),
)
_row(
    "temperature_400",
    says(
        400,
        _error(
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported.",
            "unsupported_value",
        ),
    ),
    replace(RIGHT, warns=True),
    holding("temperature"),
)
_row("temperature_400_kimi", says(400, _error("invalid temperature: only 1 is allowed for this model")), replace(RIGHT, warns=True), holding("temperature"))  # fmt: skip
_row(
    "seed_400",
    says(400, _error("Unknown parameter: 'seed'.", "unknown_parameter")),
    REFUSED,
    holding("seed"),
    options={"seed": 7},
)
_row(
    "logprobs_400",
    says(400, _error("logprobs are not supported with this model.")),
    REFUSED,
    holding("logprobs"),
    options={"top_logprobs": 5},
)
_row(
    "own_output_limit_too_small",
    message(content="The mean of the", finish="length"),
    WARNED,
    options={"max_output_tokens": 5},
)
_row("own_timeout_too_small", late(1.5), WARNED, options={"timeout_s": 0.4})
_row(
    "own_concurrency_too_large",
    queued(0.2, drops_abandoned=True),
    MENDED,
    options={"concurrency": 64, "timeout_s": 1.5},
)
_row("endpoint_cuts_at_16_tokens", message(content="The mean of the", finish="length"), REFUSED)

# --- fields of messages ----------------------------------------------------------------------------------------------

_SIGNED = {"extra_content": {"google": {"thought_signature": "CsYCAdHtim+sign=="}}}
_THINKS = {"reasoning_content": "The mean is half of the sum. First I add."}
_ODD = {
    "reasoning": "First I add.",
    "annotations": [{"type": "none"}],
    "vendor_state": {"step": [1, 2]},
}
for name, protocol in {"native": _NATIVE, "react": _REACT}.items():
    _rows(RIGHT, {
        f"returns_reasoning_deepseek_{name}": replayed(_THINKS),
        f"returns_signature_gemini_{name}": replayed(_SIGNED, _SIGNED, names=True),
        f"returns_unknown_fields_{name}": replayed(_ODD, {"index": 0, "vendor_state": "x"}),
    }, **protocol)  # fmt: skip
    _rows(RIGHT, {
        f"refuses_fields_groq_{name}": forbidding(_THINKS, lambda at, key: _error(f"'messages.{at}' : for 'role:assistant' the following must be satisfied[('messages.{at}' : property '{key}' is unsupported)]")),
        f"refuses_fields_mistral_{name}": forbidding(_ODD, lambda at, key: {"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", at, "assistant", key], "msg": "Extra inputs are not permitted", "input": "x"}]}}, status=422),
        f"refuses_fields_serde_{name}": forbidding(_ODD, lambda at, key: _error(f"messages[{at}]: unknown field `{key}`, expected one of `role`, `content`, `tool_calls`, `tool_call_id`"), {"vendor_state": "x"}),
    }, **protocol)  # fmt: skip
_row(
    "returns_null_content",
    replayed({"content": None, "refusal": None}),
    RIGHT,
    lambda r: r.turn < 2,
    **_NATIVE,
)
_row(
    "refuses_ids_mistral",
    says(
        400,
        _error(
            "Tool call id was c0 but must be a-z, A-Z, 0-9, with a length of 9.",
            "invalid_request_error",
        ),
    ),
    RIGHT,
    holding_text('"tool_call_id": "c0"'),
    **_NATIVE,
)
_SYSTEM = holding_text('"role": "system"')
_rows(RIGHT, {
    "system_role_400_gemma": says(400, _error("System role not supported", 400, "BadRequestError")),
    "system_role_400_gemini": says(400, [{"error": {"code": 400, "message": "Developer instruction is not enabled for models/gemma-3-27b-it", "status": "INVALID_ARGUMENT"}}]),
    "system_role_400_mistral": says(400, _error("Conversation roles must alternate user/assistant/user/assistant/...", 400, "BadRequestError")),
    "system_role_500_llamacpp": says(500, {"error": {"code": 500, "message": "Jinja Exception: System role not supported", "type": "server_error"}}),
}, _SYSTEM, **_REACT)  # fmt: skip

# --- another model, or a part of the prompt --------------------------------------------------------------------------

_row(
    "another_model",
    changed(lambda data: {**data, "model": "qwen2.5-0.5b-instruct"}),
    replace(RIGHT, warns=True),
)
_row(
    "same_model_dated",
    changed(lambda data: {**data, "model": "m-2025-04-14", "system_fingerprint": "fp_1"}),
    RIGHT,
)
for name, protocol in {"native": _NATIVE, "react": _REACT}.items():
    _row(
        f"prompt_cut_far_{name}",
        counting(lambda characters: min(characters // 4, 300)),
        INVALID,
        **protocol,
    )
    _row(
        f"prompt_cut_as_it_grows_{name}",
        counting(lambda characters: min(characters // 4, 700)),
        INVALID,
        **protocol,
    )
    _row(f"prompt_counted_{name}", counting(lambda characters: characters // 4), RIGHT, **protocol)
_row("prompt_not_counted", counting(lambda _characters: 0), RIGHT, **_REACT)

# --- what does not fit -----------------------------------------------------------------------------------------------

_LLAMACPP = (
    "request (1030 tokens) exceeds the available context size (1024 tokens), try increasing it"
)
_FITS_NOT = {
    "openai": says(400, _error("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.", "context_length_exceeded")),
    "vllm": says(400, {"object": "error", "message": "This model's maximum context length is 4096 tokens. However, your request has 9000 input tokens. Please reduce the length of the input messages. None", "type": "BadRequestError", "code": 400}),
    "llamacpp": says(400, {"error": {"code": 400, "message": _LLAMACPP, "type": "exceed_context_size_error", "n_prompt_tokens": 1030, "n_ctx": 1024}}),
    "llamacpp_older": says(500, {"error": {"code": 500, "message": "the request exceeds the available context size. try increasing the context size or enable context shift", "type": "server_error"}}),
    "litellm": says(400, _error(f"litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - {_LLAMACPP}\nmodel=m. context_window_fallbacks=None. fallbacks=None.", "400")),
    "gemini": says(400, [{"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}]),
}  # fmt: skip
for vendor, fits_not in _FITS_NOT.items():
    _row(f"context_of_one_{vendor}", fits_not, _result("context invalid"), **_alone(3))
_row("context_of_all", _FITS_NOT["openai"], WARNED)
_GROQ_TPM = _error(
    "Request too large for model `m` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 9012, please reduce your message size and try again.",
    "rate_limit_exceeded",
    "tokens",
)
_rows(INVALID, {
    "size_413_tokens_per_minute": says(413, _GROQ_TPM),
    "size_413_nginx": says(413, _html("413 Request Entity Too Large", "nginx/1.24.0")),
    "size_413_cloudflare": says(413, _html("413 Payload Too Large", "cloudflare")),
    "size_413_express": says(413, {"message": "request entity too large", "type": "entity.too.large"}),
    "size_413_anthropic": says(413, {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum allowed number of bytes."}}),
    "size_429_tokens_per_minute": says(429, _error("Request too large for gpt-x in organization org-1 on tokens per min (TPM): Limit 30000, Requested 34000. The input or output tokens must be reduced in order to run successfully.", "rate_limit_exceeded", "tokens")),
})  # fmt: skip
_row(
    "size_413_of_one_prompt",
    says(413, _html("413 Request Entity Too Large", "nginx/1.24.0")),
    INVALID,
    **_alone(3),
)
_row("size_413_tpm_of_one_prompt", says(413, _GROQ_TPM), INVALID, **_alone(3))
_rows(INVALID, {
    "error_500_cuda": says(500, _error("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.1 GiB; reduce the context length or max_seq_len", 500, "InternalServerError")),
    "error_500_traceback": says(500, "Traceback (most recent call last):\n  File \"/app/context_window.py\", line 3, in check\nKeyError: 'context_window'"),
    "error_500_kv_cache": says(500, {"error": {"code": 500, "message": "failed to find a memory slot for the batch: the context size of the KV cache is used up by other sequences", "type": "server_error"}}),
    "error_500_plain": says(500, "Internal Server Error"),
    "error_502_html": says(502, _html("502 Bad Gateway", "nginx")),
    "error_503_html": says(503, _html("503 Service Temporarily Unavailable")),
    "error_504_html": says(504, _html("504 Gateway Time-out", "nginx")),
    "error_520_cloudflare": says(520, _html("520: Web server is returning an unknown error")),
    "error_524_cloudflare": says(524, _html("524: A timeout occurred")),
    "error_529_anthropic": says(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    "error_429_litellm_no_deployment": says(429, _error("No deployments available for selected model.", "429", "internal_server_error")),
    "error_500_litellm": says(500, _error("litellm.InternalServerError: OpenAIException - Connection error.. Received Model Group=m\nAvailable Model Group Fallbacks=None", "500", None)),
    "error_408_litellm": says(408, _error("litellm.Timeout: APITimeoutError - Request timed out. Error_str: Request timed out.", "408", None)),
    "error_503_no_worker": says(503, _error("No available worker", 503, "service_unavailable")),
    "error_498_groq_capacity": says(498, _error("Flex tier capacity exceeded", "capacity_exceeded", "server_error")),
})  # fmt: skip
_rows(INVALID, {
    "prompt_400_first": says(400, _error("Invalid 'messages[1].content': string is not valid")),
    "prompt_403_first": says(403, _html("403 Forbidden", "Request blocked by the web application firewall")),
    "prompt_404_first": says(404, _html("404 Not Found", "No route for this request")),
}, **_alone(0))  # fmt: skip
_rows(INVALID, {
    "prompt_400": says(400, _error("Invalid 'messages[1].content': string is not valid")),
    "prompt_400_quotes_context": says(400, _error("template error near 'context window' in: {question}")),
    "prompt_403_waf": says(403, _html("403 ERROR", "The request could not be satisfied. Request blocked. CloudFront")),
    "prompt_403_html_flagged": says(403, _html("Blocked", "Your request was flagged by the firewall; see our content policy")),
    "prompt_404": says(404, _html("404 Not Found", "No route for this request")),
    "prompt_406": says(406, _html("Not Acceptable!", "An appropriate representation could not be found. Mod_Security")),
    "prompt_422": says(422, {"detail": [{"loc": ["body", "messages", 1, "content"], "msg": "Input should be a valid string", "type": "string_type"}]}),
    "prompt_500": says(500, _error("tokenizer failed", 500, "InternalServerError")),
    "prompt_reset": reset,
    "prompt_html_200": says(200, _html("Blocked by your organisation")),
}, **_alone(5), limit_s=25.0)  # fmt: skip
_row(
    "prompt_401",
    says(401, _error("Unauthorized: token expired while the request was routed", 401)),
    MENDED,
    asked_about(5),
)
_rows(_result("filtered invalid"), {
    "filtered_403_openrouter": says(403, {"error": {"code": 403, "message": 'm requires moderation on OpenAI. Your input was flagged for "violence"', "metadata": {"reasons": ["violence"], "flagged_input": "..."}}}),
    "filtered_400_azure": says(400, _error("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", "content_filter")),
    "filtered_400_dashscope": says(400, _error("Input data may contain inappropriate content.", "data_inspection_failed", "data_inspection_failed")),
    "filtered_200_finish": message(content="", finish="content_filter"),
    "filtered_200_gemini": changed(lambda _d: {"choices": [], "promptFeedback": {"blockReason": "SAFETY"}}),
}, **_alone(5))  # fmt: skip
_row("filtered_all", message(content="", finish="content_filter"), WARNED)

# --- successes that are none -----------------------------------------------------------------------------------------

_CUT_TEXT = "The mean of 3 and"
_ABORTED = ("error", "abort", "aborted", "cancelled", "insufficient_system_resource", "network_error", "timeout", "other", "unknown", "engine_overloaded", "load_shedding")  # fmt: skip
_rows(
    INVALID, {f"finish_{reason}": message(content=_CUT_TEXT, finish=reason) for reason in _ABORTED}
)
_row("finish_error_of_one", message(content=_CUT_TEXT, finish="error"), INVALID, **_alone(3))
_row("finish_abort_in_the_middle", message(content="", finish="abort"), MENDED, arriving(5, 8))
_row("finish_null_empty", message(content="", finish=None), INVALID)
_row(
    "finish_length_of_one",
    message(content=_CUT_TEXT, finish="length"),
    _result("length invalid"),
    **_alone(3),
)
_row("finish_length_native_of_one", calls(lambda made: [{**made[0], "function": {"name": "calculate", "arguments": '{"expr'}}], finish="length"), _result("length invalid"), **_alone(3), **_NATIVE)  # fmt: skip
_DONE = {
    "eos": "eos",
    "eos_token": "eos_token",
    "stop_sequence": "stop_sequence",
    "end_turn": "end_turn",
    "complete": "COMPLETE",
    "capitals": "STOP",
}
_rows(RIGHT, {f"finish_{name}": message(finish=reason) for name, reason in _DONE.items()})
_rows(MENDED, {"finish_blank": message(finish=""), "finish_null": message(finish=None)})
_row("choice_error_openrouter", changed(lambda data: {**data, "choices": [{"message": {"role": "assistant", "content": _CUT_TEXT}, "finish_reason": "error", "error": {"code": 502, "message": "Provider disconnected"}}]}), INVALID)  # fmt: skip
_row("choice_error_finish_stop", changed(lambda data: {**data, "choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop", "error": {"code": 502, "message": "Provider disconnected"}}]}), INVALID)  # fmt: skip
_rows(INVALID, {
    "error_in_200_int": says(200, {"error": {"message": "upstream is gone", "code": 503}}),
    "error_in_200_text_code": says(200, {"error": {"message": "Rate limit reached", "code": "429"}}),
    "error_in_200_string": says(200, {"error": "model is overloaded"}),
    "error_in_200_context_words": says(200, _error("worker died: context window of another request", "internal")),
    "error_in_200_detail": says(200, {"detail": "Internal error"}),
    "error_in_200_message": says(200, {"message": "Endpoint request timed out"}),
    "error_in_200_zhipu": says(200, {"code": 500, "msg": "404 NOT_FOUND", "success": False}),
    "error_in_200_minimax": says(200, {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}),
    "error_as_content": message(content=None, finish=None, error="upstream connect error"),
    "no_choices": says(200, {"id": "x", "object": "chat.completion", "choices": []}),
    "choices_object": changed(lambda data: {**data, "choices": data["choices"][0]}),
    "choices_null": changed(lambda data: {**data, "choices": None}),
    "choice_is_text": changed(lambda data: {**data, "choices": ["hello"]}),
    "message_is_text": changed(lambda data: {**data, "choices": [{"message": "hello", "finish_reason": "stop"}]}),
    "message_null": changed(lambda data: {**data, "choices": [{"message": None, "finish_reason": "stop"}]}),
    "message_missing": changed(lambda data: {**data, "choices": [{"index": 0, "finish_reason": "stop"}]}),
    "content_number": message(content=17),
    "content_object": message(content={"oops": True}),
    "content_list_of_numbers": message(content=[1, 2]),
    "role_user_echo": changed(lambda data: {**data, "choices": [{"message": {"role": "user", "content": "mean:"}, "finish_reason": None}]}),
    "legacy_completion": changed(lambda _data: {"object": "text_completion", "choices": [{"text": " the", "finish_reason": None}]}),
    "another_object": says(200, {"object": "list", "data": [{"object": "embedding", "embedding": [0.1]}]}),
    "not_started_chunk": changed(lambda data: {**data, "object": "chat.completion.chunk", "choices": [{"delta": {"role": "assistant"}, "finish_reason": None}]}),
    "cut_json": changed(lambda data: json.dumps(data).encode()[:-20]),
    "html_200": says(200, _html("Please log in to the wireless network")),
    "plain_ok_200": says(200, "OK"),
    "json_list_200": says(200, [1, 2]),
    "json_string_200": says(200, '"hello"'),
    "json_null_200": says(200, "null"),
    "empty_200": says(200, b""),
    "no_content_204": raw(lambda _r: b"HTTP/1.1 204 No Content\r\n\r\n", close=False),
    "accepted_202": says(202, {"id": "task-1", "status": "queued"}),
    "deep_json": says(200, b"[" * 200_000),
    "task_status_processing": changed(lambda data: {"id": data["id"], "task_status": "PROCESSING"}),
})  # fmt: skip
_rows(TOLD, {
    "message_empty": changed(lambda data: {**data, "choices": [{"message": {}, "finish_reason": "stop"}]}),
    "content_list_of_images": message(content=[{"type": "image", "data": "AAAA"}]),
})  # fmt: skip
_row("empty_stop_of_all", message(content=""), TOLD)
_row("null_content_of_all", message(content=None), TOLD)
_row("thoughts_alone_of_all", message(content="", reasoning_content="First I add and then"), TOLD)
_row("empty_no_tokens_of_one", changed(lambda data: {**data, "choices": [{"message": {"role": "assistant", "content": None}, "finish_reason": None}], "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}), INVALID, **_alone(3))  # fmt: skip


def _sse(data: dict[str, Any]) -> bytes:
    words = data["choices"][0]["message"]["content"].split(" ")
    events = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": f"{word} "}, "finish_reason": None}]} for word in words]  # fmt: skip
    events.append(
        {
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        }
    )
    return (
        b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)
        + b"data: [DONE]\n\n"
    )


def _lines(data: dict[str, Any]) -> bytes:
    words = data["choices"][0]["message"]["content"].split(" ")
    made = [
        {"model": "m", "message": {"role": "assistant", "content": f"{word} "}, "done": False}
        for word in words
    ]
    return b"".join(
        json.dumps(line).encode() + b"\n" for line in [*made, {"done": True, "done_reason": "stop"}]
    )


_rows(MENDED, {
    "stream_events": changed(_sse, Content_Type="text/event-stream"),
    "stream_events_wrong_type": changed(_sse),
    "stream_events_cut": changed(lambda data: _sse(data)[:-150], Content_Type="text/event-stream"),
    "stream_lines_ollama": changed(_lines, Content_Type="application/x-ndjson"),
    "json_twice": changed(lambda data: json.dumps(data).encode() * 2),
    "json_with_comments_openrouter": changed(lambda data: b": OPENROUTER PROCESSING\n\n" * 3 + json.dumps(data).encode()),
    "utf16_body": changed(lambda data: json.dumps(data).encode("utf-16")),
    "byte_order_mark": changed(lambda data: b"\xef\xbb\xbf" + json.dumps(data).encode()),
    "invalid_utf8": changed(lambda data: json.dumps(data).encode().replace(b"mean:", b"mean\xff:")),
    "javascript_callback": changed(lambda data: b"callback(" + json.dumps(data).encode() + b");"),
    "brotli_unknown": changed(lambda data: json.dumps(data).encode(), Content_Encoding="br"),
    "not_gzip": changed(lambda data: json.dumps(data).encode(), Content_Encoding="gzip"),
    "gzip_cut": changed(lambda data: gzip.compress(json.dumps(data).encode())[:-30], Content_Encoding="gzip"),
    "nested_in_data": changed(lambda data: {"code": 0, "data": data}),
    "processed_prefix_text": changed(lambda data: b"HTTP 200 OK\n" + json.dumps(data).encode()),
})  # fmt: skip
_rows(RIGHT, {
    "type_text_plain": changed(lambda data: data, Content_Type="text/plain"),
    "type_text_html": changed(lambda data: data, Content_Type="text/html; charset=iso-8859-1"),
    "type_octets": changed(lambda data: data, Content_Type="application/octet-stream"),
    "status_201": lambda request: request.send(201, request.good),
    "gzip": changed(lambda data: gzip.compress(json.dumps(data).encode()), Content_Encoding="gzip"),
    "usage_null": changed(lambda data: {**data, "usage": None}),
    "usage_odd": changed(lambda data: {**data, "usage": {"prompt_tokens": "many", "completion_tokens": -3, "total_tokens": [1]}}),
    "usage_nan": changed(lambda data: json.dumps({**data, "usage": {"prompt_tokens": float("nan")}}).encode()),
    "lone_surrogate": text(lambda told: f"\ud83d {told}"),
    "nul_bytes": text(lambda told: f"\0 {told}"),
    "content_parts": changed(lambda data: {**data, "choices": [{"message": {"content": [{"type": "text", "text": data["choices"][0]["message"]["content"]}]}, "finish_reason": "stop"}]}),
    "blanks_around": text(lambda told: f"\n\n   \t{told}   \r\n\n"),
    "blanks_around_body": changed(lambda data: b"\n \n" * 2000 + json.dumps(data).encode() + b"\n\n"),
    "fenced": text(lambda told: f"```\n{told}\n```"),
    "fenced_text": text(lambda told: f"Here is the answer:\n```text\n{told}\n```"),
    "thinking_inline": text(lambda told: f"<think>\nmean: 99999 t/ha?\n</think>\n\n{told}"),
    "thinking_tag_lost": text(lambda told: f"mean: 99999 t/ha?\n</think>\n\n{told}"),
    "end_tokens_left": text(lambda told: f"{told}<|im_end|>\n<|endoftext|>"),
    "role_prefix_left": text(lambda told: f"<|start_header_id|>assistant<|end_header_id|>\n\n{told}<|eot_id|>"),
    "long_reply": text(lambda told: "It is sunny over the field. " * 2_000 + "\n" + told),
    "many_choices": changed(lambda data: {**data, "choices": data["choices"] * 3}),
    "warning_beside": changed(lambda data: {**data, "error": None, "warnings": ["deprecated"]}),
    "error_empty_beside": changed(lambda data: {**data, "error": {}}),
    "old_http": raw(lambda request: b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + request.good),
    "hints_before": raw(lambda request: b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(request.good) + request.good, close=False),
    "closes_each_time": raw(lambda request: b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(request.good) + request.good),
    "says_keep_alive_and_closes": raw(lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(request.good) + request.good),
    "in_small_pieces": pieces(0.01, end=True),
})  # fmt: skip

# --- tool calls ------------------------------------------------------------------------------------------------------

_rows(INVALID, {
    "calls_text": calls(lambda _made: "calculate"),
    "calls_null_entries": calls(lambda _made: [None]),
    "calls_empty_entries": calls(lambda _made: [{}]),
    "calls_without_function": calls(lambda made: [{"id": made[0]["id"], "type": "function"}]),
    "calls_function_null": calls(lambda made: [{**made[0], "function": None}]),
    "calls_name_null": calls(lambda made: [{**made[0], "function": {"name": None, "arguments": "{}"}}]),
    "calls_number": calls(lambda _made: 3),
    "calls_promised_and_lost": calls(lambda _made: [], content="", finish="tool_calls"),
    "calls_lost_with_key": calls(lambda _made: None, content=None, finish="tool_calls"),
    "calls_of_another_kind": calls(lambda _made: [{"id": "1", "type": "custom", "custom": {"input": "x"}}]),
}, **_NATIVE)  # fmt: skip
_rows(_result("unparseable invalid"), {
    "calls_name_missing_of_one": calls(lambda made: [{**made[0], "function": {"arguments": "{}"}}]),
    "calls_failed_500_llamacpp": says(500, {"error": {"code": 500, "message": "The model produced output that does not match the expected peg-native format", "type": "server_error"}}),
    "calls_failed_500_llamacpp_grammar": says(500, {"error": {"code": 500, "message": "got exception: Unexpected empty grammar stack after accepting piece: <tool_call>\nnonsense\n</tool_call> (1306)", "type": "server_error"}}),
    "calls_failed_400_groq": says(400, _error("Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.", "tool_use_failed", failed_generation="<function=calculate{...}")),
}, **_alone(3), **_NATIVE)  # fmt: skip
_rows(RIGHT, {
    "calls_arguments_object": calls(lambda made: [{**made[0], "function": {"name": "calculate", "arguments": json.loads(made[0]["function"]["arguments"])}}]),
    "calls_arguments_quoted_twice": calls(lambda made: [{**made[0], "function": {"name": "calculate", "arguments": json.dumps(made[0]["function"]["arguments"])}}]),
    "calls_ids_empty": calls(lambda made: [{**made[0], "id": ""}]),
    "calls_ids_null": calls(lambda made: [{**made[0], "id": None}]),
    "calls_without_type": calls(lambda made: [{"id": "x", "function": made[0]["function"]}]),
    "calls_finish_stop": calls(lambda made: made, finish="stop"),
    "calls_in_the_text": calls(lambda _made: None, content='<tool_call>\n{"name": "calculate", "arguments": {"expression": "1 + 1"}}\n</tool_call>', finish="stop"),
}, **_NATIVE)  # fmt: skip
_rows(RIGHT, {
    "calls_null_beside_text": message(tool_calls=None), "calls_empty_beside_text": message(tool_calls=[]),
}, at_turn(2), **_NATIVE)  # fmt: skip
_row("calls_object_for_list", calls(lambda made: made[0]), MENDED, **_NATIVE)
_row(
    "react_error_in_the_middle",
    says(502, _html("502 Bad Gateway")),
    RIGHT,
    lambda r: r.turn == 1 and r.attempt == 1,
    **_REACT,
)
_row("react_hangs_at_second_turn", hung, RIGHT, lambda r: r.turn == 1 and r.attempt == 1, options={"timeout_s": 2.0}, limit_s=30.0, **_REACT)  # fmt: skip

# --- bodies and connections ------------------------------------------------------------------------------------------

_SHORT = {"timeout_s": 1.5, "stall_s": 0.7}
_ONCE = tried(1)
for name, act in {
    "reset": reset, "hang_up": hang_up, "cut": cut, "stalled": stalled,
    "huge_header": raw(lambda _r: b"HTTP/1.1 200 OK\r\nX-Padding: " + b"x" * 2**20 + b"\r\n\r\n"),
    "bad_length": raw(lambda _r: b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}"),
    "no_http": raw(lambda _r: b"220 mail.example.org ESMTP ready\r\n\r\n"),
    "chunks_cut": raw(lambda r: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (40, r.good[:40])),
    "chunks_bad": raw(lambda r: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + r.good),
}.items():  # fmt: skip
    _row(f"{name}_once", act, RIGHT, _ONCE, options=_SHORT, limit_s=25.0)
    _row(f"{name}_always", act, INVALID, options=_SHORT, limit_s=25.0)
_row("gzip_bomb_of_all", changed(lambda _d: bomb(50 * 2**20), Content_Encoding="gzip"), INVALID, options={"timeout_s": 10.0}, limit_s=40.0)  # fmt: skip
_row("gzip_bomb_of_one", changed(lambda _d: bomb(50 * 2**20), Content_Encoding="gzip"), INVALID, options={"timeout_s": 10.0}, **_alone(3))  # fmt: skip
_row(
    "endless_blanks_of_one",
    pieces(0.05, end=False),
    _result("timeout invalid"),
    options=_SHORT,
    **_alone(3),
)
_row("endless_blanks_of_all", pieces(0.05, end=False), INVALID, options=_SHORT, limit_s=30.0)
_row("huge_text_of_all", text(lambda told: "It is sunny over the field. " * 40_000 + "\n" + told), _result("right wrong invalid"), options={"timeout_s": 10.0}, limit_s=40.0)  # fmt: skip
_row("huge_body_of_all", changed(lambda data: b" " * (17 * 2**20) + json.dumps(data).encode()), INVALID, options={"timeout_s": 10.0}, limit_s=40.0)  # fmt: skip
_row("hung_all", hung, INVALID, options=_SHORT, limit_s=30.0)
_row("hung_once", hung, RIGHT, _ONCE, options=_SHORT, limit_s=30.0)
_row("hung_some_always", hung, _result("timeout invalid"), asked_about(3, 7), met=frozenset({3, 7}), options=_SHORT, limit_s=30.0)  # fmt: skip
_row(
    "hung_some_once",
    hung,
    RIGHT,
    lambda r: r.sample in (3, 7) and r.attempt == 1,
    options=_SHORT,
    limit_s=30.0,
)
_row("hung_from_the_sixth", hung, MENDED, arriving(6), options=_SHORT, limit_s=40.0)
_row("hung_in_the_middle", hung, MENDED, arriving(4, 9), options=_SHORT, limit_s=30.0)
_row(
    "dies_in_the_middle",
    go_away,
    MENDED,
    arriving(7, 7),
    options={**_SHORT, "concurrency": 2},
    limit_s=30.0,
)
_row(
    "away_shortly",
    go_away_shortly,
    RIGHT,
    lambda r: r.sample == 5 and r.attempt == 1,
    options={"attempts": 6},
)

# --- load ------------------------------------------------------------------------------------------------------------

_LOAD = {"timeout_s": 2.0, "attempts": 5, "retry_wall_s": 60}
_row("queue", queued(0.4, drops_abandoned=True), RIGHT, options=_LOAD, limit_s=45.0)
_row(
    "queue_serves_the_abandoned",
    queued(0.3, drops_abandoned=False),
    RIGHT,
    options=_LOAD,
    limit_s=45.0,
)
_row(
    "queue_two_wide_32",
    queued(0.25, drops_abandoned=True),
    RIGHT,
    options={**_LOAD, "concurrency": 32},
    limit_s=45.0,
)
_row(
    "queue_tools", queued(0.35, drops_abandoned=True), RIGHT, options=_LOAD, limit_s=75.0, **_NATIVE
)
_row("slow_with_load", late(lambda r: 0.4 * r.server.in_flight), RIGHT, options=_LOAD, limit_s=45.0)
_row(
    "slower_and_slower",
    late(lambda r: 0.15 * r.arrived),
    MENDED,
    options={"timeout_s": 1.5},
    limit_s=45.0,
)
_row("slow_in_the_middle", late(3.0), RIGHT, arriving(4, 7), options=_LOAD, limit_s=45.0)
_row("asleep_at_first", asleep, RIGHT, options=_LOAD, limit_s=45.0)
_row("loading_503_at_first", until(2.0, says(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})), RIGHT, options={"attempts": 6})  # fmt: skip
_row("loading_404_at_first", until(1.0, says(404, _html("404 Not Found"))), MENDED)
_BUSY = says(429, _error("Too many concurrent requests", "concurrency_limit", "rate_limit_error"))
_row("crowded_429", crowded(2, _BUSY), RIGHT, options={"attempts": 6}, limit_s=30.0)
_row(
    "crowded_503", crowded(2, says(503, "overloaded")), RIGHT, options={"attempts": 6}, limit_s=30.0
)
_row("crowded_reset", crowded(2, reset), RIGHT, options={"attempts": 6}, limit_s=30.0)
_row("crowded_hangs", crowded(2, hung), RIGHT, options=_LOAD, limit_s=45.0)
_row("crowded_500", crowded(3, says(500, _error("pool exhausted", 500, "server_error"))), RIGHT, options={"attempts": 6}, limit_s=30.0)  # fmt: skip
_row("crowded_empty_200", crowded(3, says(200, b"")), RIGHT, options={"attempts": 6}, limit_s=30.0)
_row("crowded_finish_abort", crowded(3, message(content="", finish="abort")), MENDED, options={"attempts": 6}, limit_s=30.0)  # fmt: skip

# --- rate limits -----------------------------------------------------------------------------------------------------

_SLOW_DOWN = _error("Rate limit reached for m in organization org-1 on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 1.2s.", "rate_limit_exceeded", "requests")  # fmt: skip


def _soon(seconds: float) -> str:
    return format_datetime(
        (datetime.now(UTC) + timedelta(seconds=seconds)).replace(microsecond=0), usegmt=True
    )


def _limited(**headers: str) -> Act:
    return says(429, _SLOW_DOWN, **headers)


async def _limited_to_a_date(request: Request) -> bool:
    return await _limited(Retry_After=_soon(2))(request)


_rows(RIGHT, {
    "rate_retry_after_s": _limited(Retry_After="1"),
    "rate_retry_after_fraction": _limited(Retry_After="0.7"),
    "rate_retry_after_ms": _limited(Retry_After_Ms="700"),
    "rate_retry_after_date": _limited_to_a_date,
    "rate_retry_after_past_date": _limited(Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
    "rate_retry_after_garbage": _limited(Retry_After="soon"),
    "rate_retry_after_negative": _limited(Retry_After="-5"),
    "rate_retry_after_nan": _limited(Retry_After="nan"),
    "rate_reset_headers_openai": _limited(X_Ratelimit_Reset_Requests="1s", X_Ratelimit_Remaining_Requests="0"),
    "rate_reset_headers_anthropic": _limited(Anthropic_Ratelimit_Requests_Reset="2026-01-01T00:00:01Z"),
    "rate_reset_headers_epoch": _limited(X_Ratelimit_Reset="1900000000000", X_Ratelimit_Remaining="0"),
    "rate_gemini_delay": says(429, [{"error": {"code": 429, "message": "Resource has been exhausted", "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}]}}]),
    "rate_html": says(429, _html("429 Too Many Requests", "nginx")),
    "rate_503_retry_after": says(503, "busy", Retry_After="1"),
    "rate_529": says(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
}, _ONCE)  # fmt: skip
_row(
    "rate_in_200",
    says(200, {"error": {"message": "Rate limit exceeded", "code": 429}}),
    RIGHT,
    _ONCE,
)
_row("rate_window_without_header", windowed(4, 1.0, _limited()), RIGHT, options={"attempts": 8, "retry_wall_s": 60}, limit_s=30.0)  # fmt: skip
_row("rate_window_with_header", windowed(4, 1.0, _limited(Retry_After="1")), RIGHT, options={"attempts": 8, "retry_wall_s": 60}, limit_s=30.0)  # fmt: skip
_row("rate_a_day", _limited(Retry_After="86400"), INVALID)
_row("rate_quota_of_the_day_gemini", says(429, [{"error": {"code": 429, "message": "You exceeded your current quota. Quota exceeded for metric: generate_content_free_tier_requests, limit: 50", "status": "RESOURCE_EXHAUSTED"}}]), INVALID)  # fmt: skip
_row("rate_403_github", says(403, {"message": "API rate limit exceeded for user ID 1."}, Retry_After="1"), MENDED, arriving(5, 6))  # fmt: skip
_row("rate_400_siliconflow", says(400, {"code": 50505, "message": "Model service overloaded. Please try again later.", "data": None}), MENDED, arriving(5, 6))  # fmt: skip

# --- only at first, only in the middle -------------------------------------------------------------------------------

_FIRST = arriving(1, 1)
_rows(RIGHT, {
    "first_500": says(500, "warming up"), "first_502": says(502, _html("502 Bad Gateway")), "first_reset": reset,
    "first_empty": says(200, b""), "first_html": says(200, _html("Starting")), "first_503": says(503, "starting"),
    "first_hang_up": hang_up, "first_429": _limited(),
}, _FIRST)  # fmt: skip
_row("first_hung", hung, RIGHT, _FIRST, options=_SHORT, limit_s=30.0)
_rows(MENDED, {
    "first_400": says(400, _error("bad request")), "first_401": says(401, _error("token is not active yet", 401)),
    "first_403": says(403, _html("403 Forbidden")), "first_404": says(404, _html("404 Not Found")),
    "first_402": says(402, _error("billing is being checked", 402)),
}, _FIRST)  # fmt: skip
_rows(RIGHT, {
    "middle_500": says(500, "Internal Server Error"), "middle_502": says(502, _html("502 Bad Gateway")),
    "middle_html_200": says(200, _html("Maintenance")), "middle_no_choices": says(200, {"choices": []}),
    "middle_reset": reset, "middle_cut": cut, "middle_error_in_200": says(200, {"error": {"message": "gone", "code": 502}}),
}, arriving(5, 9))  # fmt: skip
_rows(MENDED, {
    "middle_404": says(404, _error("model is being reloaded", "model_not_found")),
    "middle_401": says(401, _error("Unauthorized", 401)), "middle_403": says(403, _html("403 Forbidden")),
    "middle_400": says(400, _error("upstream rejected the request", 400)),
}, arriving(5, 6))  # fmt: skip
_rows(MENDED, {
    "key_revoked": says(401, _error("Incorrect API key provided", "invalid_api_key")),
    "credit_used_up": says(402, _error("Insufficient Balance")),
    "quota_used_up": says(429, _error("You exceeded your current quota", "insufficient_quota")),
    "model_withdrawn": says(404, _error("The model `m` does not exist", "model_not_found")),
    "server_broken": says(500, _error("CUDA error: an illegal memory access was encountered", 500)),
    "length_from_the_seventh": message(content="", finish="abort"),
}, arriving(7), options={"concurrency": 3}, limit_s=30.0)  # fmt: skip

_row("healthy", good, RIGHT)
_row("healthy_tools", good, RIGHT, **_NATIVE)
_row("healthy_react", good, RIGHT, **_REACT)
_row("healthy_pictures", good, RIGHT, pictures=True)

FAULTS: dict[str, Fault] = {row.name: row for row in _ROWS}
assert len(FAULTS) == len(_ROWS), "two faults have one name"
