"""Questions of packed benchmarks follow today's templates."""

from revise_packs import types_of

from agrotools.loading.pack import read_pack


def test_a_sample_has_the_task_type_of_its_template_and_leaves_with_it():
    sample = next(each for each in read_pack("embedded").samples if each.template == "block_pest")
    misnamed = sample.model_copy(update={"task_type": "pest_diagnosis", "family": "RR"})
    assert types_of(misnamed) == {"task_type": "tree_counting", "family": "CM"}
    assert types_of(sample.model_copy(update={"template": "gone"})) is None
