"""A model that its server does not stop plays further turns: only its own first one is the reply."""

import pytest

from agrotools.agents.parsing import parse_output
from agrotools.core import Answer, CallTools
from agrotools.text.turns import own_turn, runs_on

RIGHT = "mean yield: 3.75 t/ha"
OTHER = "mean yield: 99.9 t/ha"
TOKENS = {
    "Llama 3": "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    "Llama 3 user": "<|start_header_id|>user<|end_header_id|>\n\nField 9?<|eot_id|>\n",
    "role without tokens": "assistant\n\n",
    "ChatML": "<|im_end|>\n<|im_start|>user\nField 9?<|im_end|>\n<|im_start|>assistant\n",
    "ChatML without end": "<|im_start|>user\nField 9?\n",
    "Mistral": "</s>[INST] Field 9? [/INST]\n",
    "Mistral without end": "[INST] Field 9? [/INST]\n",
    "Zephyr": "<|user|>\nField 9?\n<|assistant|>\n",
    "Phi": "<|end|>\n<|user|>\nField 9?<|end|>\n<|assistant|>\n",
    "GLM": "<|observation|>\n",
    "Gemma": "<end_of_turn>\n<start_of_turn>user\nField 9?<end_of_turn>\n<start_of_turn>model\n",
    "Command R": "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Field 9?\n",
    "DeepSeek": "<｜end▁of▁sentence｜><｜User｜>Field 9?<｜Assistant｜>",
    "Granite": "<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Field 9?\n",
    "harmony": "<|return|><|start|>user<|message|>Field 9?<|end|>",
}
PLAIN = {
    "role on a line": "\nassistant\n",
    "user glued": "user\nField 9?\nassistant\n",
    "Alpaca": "\n\n### Instruction:\nField 9?\n\n### Response:\n",
    "User:": "\nUser: Field 9?\nAssistant: ",
    "USER:": "\n\nUSER: Field 9?\nASSISTANT: ",
    "Human:": "\n\nHuman: Field 9?\n\nAssistant: ",
    "Question:": "\nQuestion: What of field 9?\n",
    "Q:": "\n\nQ: What of field 9?\nA: ",
    "bold": "\n\n**User:** Field 9?\n**Assistant:** ",
}
TAILS = TOKENS | PLAIN


@pytest.mark.parametrize("tail", TAILS)
def test_an_answer_ends_with_its_own_turn(tail: str):
    action = parse_output(RIGHT + TAILS[tail] + OTHER, protocol="tool-calling", answer_only=True)
    assert isinstance(action, Answer)
    assert action.text == RIGHT


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("again", ["", "Final Answer: "])
def test_a_marked_answer_ends_with_its_own_turn(tail: str, again: str):
    reply = f"Thought: I add.\nFinal Answer: {RIGHT}{TAILS[tail]}{again}{OTHER}"
    action = parse_output(reply, protocol="react")
    assert isinstance(action, Answer)
    assert action.text == RIGHT


@pytest.mark.parametrize("tail", TAILS)
def test_a_call_is_the_first_one(tail: str):
    call = 'Thought: I add.\nAction: calculate\nAction Input: {"expression": "1 + 2"}'
    other = 'Action: calculate\nAction Input: {"expression": "9 + 9"}'
    action = parse_output(call + TAILS[tail] + other, protocol="react", tools={"calculate": {}})
    assert isinstance(action, CallTools)
    assert [each.arguments for each in action.calls] == [{"expression": "1 + 2"}]


@pytest.mark.parametrize(
    "reply",
    [
        "Thought: The user asks for a sum.\nQuestion: What is 1 + 2?\nAction: calculate\nAction Input: {}",
        "Thought: Which field?\nUser: asks for field 2\nAction: calculate\nAction Input: {}",
    ],
)
def test_a_question_that_is_repeated_before_a_call_does_not_end_the_turn(reply: str):
    assert isinstance(parse_output(reply, tools={"calculate": {}}), CallTools)


@pytest.mark.parametrize(
    "reply",
    [
        f"Final Answer:\nQuestion: mean yield\nAnswer: {RIGHT}",
        f"Question: What is the mean?\n{RIGHT}",
        f"<|channel|>analysis<|message|>I add.<|end|><|start|>assistant<|channel|>final<|message|>{RIGHT}",
        f"<|im_start|>assistant\n{RIGHT}",
    ],
)
def test_what_stands_before_the_answer_does_not_end_the_turn(reply: str):
    action = parse_output(reply)
    assert isinstance(action, Answer)
    assert RIGHT in action.text


@pytest.mark.parametrize(
    "reply",
    [
        f"<seed:think>I add.</seed:think>{RIGHT}",
        f"<|START_THINKING|>I add.<|END_THINKING|><|START_RESPONSE|>{RIGHT}<|END_RESPONSE|>",
        f"<|begin_of_box|>{RIGHT}<|end_of_box|>",
        f"{RIGHT}<end_of_turn>",
        f"{RIGHT}<|im_end|>\n<|endoftext|>",
    ],
)
def test_marks_around_an_answer_are_no_part_of_it_and_no_further_turn(reply: str):
    action = parse_output(reply, protocol="tool-calling", answer_only=True)
    assert isinstance(action, Answer)
    assert action.text == RIGHT
    assert not runs_on(reply)


@pytest.mark.parametrize("tail", TOKENS)
def test_a_further_turn_behind_a_token_is_counted(tail: str):
    reply = RIGHT + TOKENS[tail] + OTHER
    assert runs_on(reply)
    assert own_turn(reply) == RIGHT
    assert not runs_on(RIGHT)
