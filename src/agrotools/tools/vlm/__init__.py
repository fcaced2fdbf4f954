"""Back-end ``vlm``: a vision model behind any OpenAI-compatible endpoint answers in place of a tool's own method.

The tool stays the function that it is, in its worker process: it reads the file, cuts out the picture and puts a
:class:`~agrotools.tools.vlm.question.Question`. The process that started the worker, which alone has keys and network,
asks the model (:mod:`agrotools.tools.vlm.endpoint`) and runs the call again with the reply, which the tool checks and
makes its result of.
"""

VLM = "vlm"
LEARNED = "learned:"
"""With the model's name behind it; what it does is in :mod:`agrotools.tools.learned`."""
NAME_A_MODEL = "name one with --vlm-model NAME and --vlm-base-url URL (vlm_model and vlm_base_url in a file)"
