"""The collection of pictures of pests, as ``agrotools benchmarks get pests`` lists and downloads it."""

from agrotools.core.registry import deferred
from agrotools.loading.contract import BenchmarkFiles, BenchmarkPlugin, Download

_GET = f"{__name__.rpartition('.')[0]}.pest_photos:get_pests"
_PLACE = "https://github.com/Ravindu-Kuruppuarachchi/Jute-Pest"
PEST_PICTURES = BenchmarkPlugin(
    "pests",
    deferred(_GET),
    "no benchmark, but the pictures of pests that tools packs train pests learns from",
    files=BenchmarkFiles(download=Download(_PLACE, "none stated by the mirror", target=_GET)),
)
