"""Drafting: a model writes questions, wordings or wrong options, and code checks each before people review it.

No value of an answer comes from a model: it names tools, arguments and the places of answers in results. agrotools runs
the calls (:mod:`agrotools_build.composing`), and a draft that a check refuses is counted with a typed reason and goes
nowhere. What a label or a file name says is data: the checks hold whatever the model makes of it.

* ``material``: pictures with what people noted of them, from a benchmark folder
* ``prompting``, ``prompts``: all words that a model is asked with
* ``replies``: what is read of a reply
* ``constants``, ``checking``: the checks of a draft; ``near_copies``; ``easy``: those of all drafts together
* ``questions``, ``wordings``, ``options``: the three kinds of drafts
* ``working``: requests, the ledger of drafts, and the folder for the review
* ``funnel``: how many drafts came how far
"""
