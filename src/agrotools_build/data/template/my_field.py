"""Benchmark my_field: a tool, questions that it answers, and the object by which agrotools finds them."""

from typing import Annotated

from pydantic import Field

from agrotools.calling import ToolResult, tool
from agrotools.plugin import (
    Benchmark,
    BenchmarkHeader,
    BenchmarkPlugin,
    Loading,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    ToleranceSlot,
)

CROPS = {"maize": (75.0, 18.0), "sugar beet": (45.0, 20.0), "sunflower": (70.0, 25.0)}
"""Distance of rows and of plants in a row, cm."""
Distance = Annotated[float, Field(gt=0, description="cm")]


class Density(ToolResult):
    plants_per_ha: float


@tool(category="measurement", version="1")
def my_field_density(row_cm: Distance, plant_cm: Distance) -> Density:
    """Compute the plants per hectare from the distances between rows and between plants in a row."""
    return Density(plants_per_ha=1e8 / (row_cm * plant_cm))


def make_sample(crop: str) -> Sample:
    row_cm, plant_cm = CROPS[crop]
    density = my_field_density.function(row_cm, plant_cm).plants_per_ha
    step = ReferenceStep(
        tool="my_field_density",
        arguments={"row_cm": row_cm, "plant_cm": plant_cm},
        observation=Observation(result={"plants_per_ha": density}),
    )
    slot = ToleranceSlot(
        name="density",
        label="the density",
        value=density,
        unit="plants/ha",
        rel_tol=0.01,
        from_="steps[0].observation.plants_per_ha",
    )
    return Sample(
        id=crop.replace(" ", "-"),
        query=f"Rows of {crop} are {row_cm} cm apart, plants in a row {plant_cm} cm. How many plants has a hectare?",
        files=(),
        family="CM",
        task_type="density",
        answer_type="tolerance",
        template="density",
        source="my_field",
        toolset=(step.tool,),
        reference=ReferenceTrajectory(steps=(step,)),
        answer=(slot,),
        no_tool_eligible=False,
    )


def load(_: Loading) -> Benchmark:
    header = BenchmarkHeader(
        name="my_field", version="1", licence="CC0-1.0", toolset=("my_field_density",)
    )
    return Benchmark.of(header, map(make_sample, CROPS))


PLUGIN = BenchmarkPlugin(
    name="my_field",
    load=load,
    about="how dense crops are",
    tools={"my_field_density": "my_field:my_field_density"},
)
