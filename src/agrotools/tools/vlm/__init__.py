"""Back-end ``vlm``: a vision model behind any OpenAI-compatible endpoint answers in place of a tool's own method.

The tool runs in its worker as always: it reads the file, crops the picture and states a
:class:`~agrotools.tools.services.requests.Question`. The parent process, which alone has keys and network, asks the
model (:mod:`agrotools.tools.vlm.endpoint`) and runs the call again with the reply, from which the tool makes its
result.
"""

VLM = "vlm"
LEARNED = "learned:"
"""With the model's name behind it; what it does is in :mod:`agrotools.tools.learned`."""
NAME_A_MODEL = "name one with --vlm-model NAME and --vlm-base-url URL (vlm_model and vlm_base_url in a file)"
