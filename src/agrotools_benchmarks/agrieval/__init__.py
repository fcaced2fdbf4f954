"""AgriEval: examination questions on agriculture in Chinese, without tools or images.

The paper (arXiv 2507.21773) has 14,697 multiple-choice and 2,167 open questions; its repository publishes all open
questions and 1,074 of the others. Other question sets in the same format, in any language, and CMMLU's agronomy
questions load the same way.
"""
