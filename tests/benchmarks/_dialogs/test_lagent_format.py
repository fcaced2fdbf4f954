"""Replies as lagent 0.2.4 reads them, and arguments as AgentLego 0.2.0 takes them."""

from agrotools.benchmarks._dialogs.lagent_format import DeclaredTool, Parameter

IMAGE, TEXT = Parameter("image", "image", None, True), Parameter("text", "text", "what", True)
OCR = DeclaredTool("OCR", "reads", (IMAGE,))
COUNT = DeclaredTool("CountGivenObject", "counts", (IMAGE, TEXT))
FIND = DeclaredTool("TextToBbox", "finds", (IMAGE, TEXT, Parameter("top1", "bool", None, False)))
TOOLS = (OCR, COUNT, FIND)
