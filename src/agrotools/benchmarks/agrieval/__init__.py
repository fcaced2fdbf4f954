"""AgriEval: examination questions on agriculture in Chinese, without tools or pictures.

The paper (arXiv 2507.21773) has 14,697 multiple-choice and 2,167 open questions; its repository publishes the open
ones, and 1,074 of the others. Sets in the same shape, in any language, and CMMLU's agronomy questions load alike.
"""
