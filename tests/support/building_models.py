"""Replies of models that help to build a benchmark."""

import json

from aiohttp import web

from support.openai_server import Body, completion, text_of


def question_of(body: Body) -> str:
    """The question that wordings are asked for."""
    return json.loads(text_of(body["messages"][1]))["question"]


def rewording(body: Body) -> web.Response:
    """One wording that changes a number or drops the sense, then one that is right."""
    question = question_of(body)
    right = f"For my records, {question[0].lower()}{question[1:]}"
    wrong = [question.replace("the", "the 17", 1), "How are things?"]
    return completion(f"Here you are:\n```json\n{json.dumps({'variants': [*wrong, right]})}\n```")
