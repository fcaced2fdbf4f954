"""The tools by name, and ``measure_zones``, each imported on first use.

    from agrotools_tools import measure_crop_weed_area
    area = measure_crop_weed_area("field.jpg")

:func:`agrotools.calling.get_tool` returns a tool whose name is known only at run time, also one of another package.
"""

from typing import TYPE_CHECKING, Any

from agrotools_tools.table import AGROTOOLS, GENERAL_TOOLS, TARGETS

if TYPE_CHECKING:  # for editors, which show the signatures of these tools
    from agrotools_tools.canopy_height import estimate_canopy_height
    from agrotools_tools.change.tool import detect_change
    from agrotools_tools.counting.tool import count_objects
    from agrotools_tools.crop_weed.tool import measure_crop_weed_area
    from agrotools_tools.fruit.tool import measure_fruit_size
    from agrotools_tools.general.annotation import add_text, draw_box
    from agrotools_tools.general.calculate import calculate
    from agrotools_tools.general.code import plot_code, solve_equations
    from agrotools_tools.general.large_models import (
        compare_images,
        describe_attribute,
        describe_image,
        generate_image,
        read_formula,
        search_web,
        stylize_image,
    )
    from agrotools_tools.general.objects import (
        count_given_object,
        detect_objects,
        locate_objects,
        segment_objects,
    )
    from agrotools_tools.general.text import read_text
    from agrotools_tools.lesions.tool import analyze_lesions
    from agrotools_tools.marks.tool import extract_marked_region
    from agrotools_tools.plants.tool import measure_weed_phenotype
    from agrotools_tools.plotting.tool import plot
    from agrotools_tools.recognition.diagnose_pest_disease import diagnose_pest_disease
    from agrotools_tools.recognition.identify_weed import identify_weed
    from agrotools_tools.recognition.lookup_agronomy import lookup_agronomy
    from agrotools_tools.regions.tool import describe_region
    from agrotools_tools.zones.measure import measure_zones

__all__ = ["AGROTOOLS", "GENERAL_TOOLS", "measure_zones", *TARGETS]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in TARGETS:
        from agrotools.calling import get_tool

        return get_tool(name)
    if name == "measure_zones":
        from agrotools.core.libraries import public_name

        return public_name(__name__, name, f"{__name__}.zones.measure")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
