"""Protocol ``lagent``, in which GTA, GTA-2 and ThinkGeo prompt models, as an entry of their plug-ins."""

from agrotools.plugin import PromptTemplates, RunProtocol, deferred

PROTOCOLS = {
    "lagent": RunProtocol(
        modes=("step-by-step", "end-to-end"),
        agent=deferred("agrotools.benchmarks._dialogs.lagent:make_agent"),
        prompts=deferred("agrotools.benchmarks._dialogs.declared:declared_text"),
        templates=PromptTemplates("lagent", "agrotools.benchmarks._dialogs"),
        max_turns=10,
        shows_images=False,
        stops_unparseable=False,
    )
}
