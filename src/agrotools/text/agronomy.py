"""Agronomic and remote-sensing formulas that expressions may call, each with its units and source.

Reflectances must share one scale (0..1, or all scaled by the same factor). An index is undefined if its denominator
is 0.
"""

import itertools
import math
from collections.abc import Sequence
from typing import cast

from pydantic import JsonValue

from agrotools.core.lazy import FloatArray, np
from agrotools.text.expression_functions import (
    ExpressionError,
    Function,
    Number,
    excerpt,
    number,
    numbers,
    paired,
)
from agrotools.text.units import UNITS, Unit, convert, read_unit

MAX_BANDS = 100
"""Maximum number of bands of a covariance matrix in :func:`jeffries_matusita`."""


def _positive(value: JsonValue, what: str) -> Number:
    as_number = number(value, what)
    if as_number <= 0:
        raise ExpressionError(
            f"{what} must be above 0, not {excerpt(as_number)}", hint="check the value and its unit"
        )
    return as_number


def _share_in_percent(
    part: JsonValue, whole: JsonValue, of: str, part_name: str, whole_name: str
) -> float:
    inside, everything = number(part, f"{of}: {part_name}"), _positive(whole, f"{of}: {whole_name}")
    if not 0 <= inside <= everything:
        why = f"{of}: {part_name} must be from 0 to {whole_name}, not {excerpt(inside)} of {excerpt(everything)}"
        raise ExpressionError(
            why, hint=f"write {of}({part_name}, {whole_name}), both in the same unit"
        )
    return 100 * inside / everything


def _ratio(numerator: Number, denominator: Number, of: str) -> float:
    if denominator == 0:
        raise ExpressionError(
            f"{of} does not exist where its denominator is 0", hint="check the band values"
        )
    return numerator / denominator


# --- vegetation indices --------------------------------------------------------------------------------------------


def ndvi(nir: JsonValue, red: JsonValue) -> JsonValue:
    """Normalised difference vegetation index, (NIR - R) / (NIR + R), -1..1 (Rouse et al. 1974)."""
    a, b = number(nir, "ndvi: nir"), number(red, "ndvi: red")
    return _ratio(a - b, a + b, "ndvi")


def gndvi(nir: JsonValue, green: JsonValue) -> JsonValue:
    """Green NDVI, (NIR - G) / (NIR + G), -1..1 (Gitelson, Kaufman & Merzlyak 1996)."""
    a, b = number(nir, "gndvi: nir"), number(green, "gndvi: green")
    return _ratio(a - b, a + b, "gndvi")


def ndre(nir: JsonValue, red_edge: JsonValue) -> JsonValue:
    """Normalised difference red edge index, (NIR - RE) / (NIR + RE), -1..1 (Barnes et al. 2000)."""
    a, b = number(nir, "ndre: nir"), number(red_edge, "ndre: red_edge")
    return _ratio(a - b, a + b, "ndre")


def ndwi(green: JsonValue, nir: JsonValue) -> JsonValue:
    """Normalised difference water index, (G - NIR) / (G + NIR), -1..1, above 0 for open water (McFeeters 1996)."""
    a, b = number(green, "ndwi: green"), number(nir, "ndwi: nir")
    return _ratio(a - b, a + b, "ndwi")


def savi(nir: JsonValue, red: JsonValue, soil: JsonValue = 0.5) -> JsonValue:
    """Soil-adjusted vegetation index, (1 + L)(NIR - R) / (NIR + R + L), reflectances 0..1 (Huete 1988)."""
    a, b, l_factor = number(nir, "savi: nir"), number(red, "savi: red"), number(soil, "savi: soil")
    return _ratio((1 + l_factor) * (a - b), a + b + l_factor, "savi")


def evi(nir: JsonValue, red: JsonValue, blue: JsonValue) -> JsonValue:
    """Enhanced vegetation index, 2.5 (NIR - R) / (NIR + 6 R - 7.5 B + 1), reflectances 0..1 (Huete et al. 2002)."""
    a, b, c = number(nir, "evi: nir"), number(red, "evi: red"), number(blue, "evi: blue")
    return _ratio(2.5 * (a - b), a + 6 * b - 7.5 * c + 1, "evi")


def exg(red: JsonValue, green: JsonValue, blue: JsonValue) -> JsonValue:
    """Excess green of chromatic coordinates, (2 G - R - B) / (R + G + B), -1..2 (Woebbecke et al. 1995)."""
    r, g, b = number(red, "exg: red"), number(green, "exg: green"), number(blue, "exg: blue")
    return _ratio(2 * g - r - b, r + g + b, "exg")


# --- crop, weed, disease -------------------------------------------------------------------------------------------


def lai_beer(gap_fraction: JsonValue, k: JsonValue = 0.5) -> JsonValue:
    """Leaf area index (m^2 leaf per m^2 ground) from the Beer-Lambert law, -ln(gap fraction) / k.

    ``gap_fraction`` in (0, 1] is the light below the canopy divided by the light above it, or 1 - ground cover; ``k``
    is the extinction coefficient (Monsi & Saeki 1953).
    """
    gap, extinction = number(gap_fraction, "lai_beer: gap_fraction"), _positive(k, "lai_beer: k")
    if not 0 < gap <= 1:
        why = f"lai_beer: gap_fraction must be above 0 and at most 1, not {excerpt(gap)}"
        raise ExpressionError(
            why, hint="give light below / light above the canopy, or 1 - cover_pct/100"
        )
    return -math.log(gap) / extinction + 0.0


def severity(lesion: JsonValue, leaf: JsonValue) -> JsonValue:
    """Disease severity: diseased area in percent of the area of the whole leaf, lesions included (0..100)."""
    return _share_in_percent(lesion, leaf, "severity", "lesion", "leaf")


def incidence(affected: JsonValue, inspected: JsonValue) -> JsonValue:
    """Disease incidence: affected plants in percent of the plants inspected (0..100)."""
    return _share_in_percent(affected, inspected, "incidence", "affected", "inspected")


def disease_index(counts: JsonValue) -> JsonValue:
    """Disease severity index in percent, 100 sum(grade x count) / (highest grade x plants).

    ``counts`` are the numbers of plants in grade 0, 1, 2... of the scale (McKinney 1923).
    """
    by_grade = numbers(counts, "disease_index", least=2)
    if min(by_grade) < 0 or max(by_grade) == 0:
        raise ExpressionError(
            "disease_index: counts must not be negative and not all 0",
            hint="give the plants in grade 0, 1, 2...",
        )
    weighted = math.fsum(grade * count for grade, count in enumerate(by_grade))
    return 100 * weighted / ((len(by_grade) - 1) * math.fsum(by_grade))


def audpc(days: JsonValue, severities: JsonValue) -> JsonValue:
    """Area under the disease progress curve (percent x days), by trapezoids; days ascend (Shaner & Finney 1977)."""
    times, values = paired(days, severities, "audpc", least=2)
    if any(later <= earlier for earlier, later in itertools.pairwise(times)):
        raise ExpressionError("audpc: days must ascend", hint="give the days in order, each once")
    return math.fsum(
        (values[i] + values[i + 1]) / 2 * (times[i + 1] - times[i]) for i in range(len(times) - 1)
    )


def efficacy_abbott(control: JsonValue, treated: JsonValue) -> JsonValue:
    """Efficacy of a treatment in percent, 100 (control - treated) / control (Abbott 1925)."""
    untreated = _positive(control, "efficacy_abbott: control")
    return 100 * (untreated - number(treated, "efficacy_abbott: treated")) / untreated


def plants_per_ha(row_spacing_m: JsonValue, plant_spacing_m: JsonValue) -> JsonValue:
    """Plants per hectare of a regular stand, 10,000 m^2 / (row spacing x spacing in the row), both in metres."""
    return 10_000 / (
        _positive(row_spacing_m, "plants_per_ha: row_spacing_m")
        * _positive(plant_spacing_m, "plants_per_ha: plant_spacing_m")
    )


def seeding_rate(
    plants_per_m2: JsonValue, tkw_g: JsonValue, establishment_pct: JsonValue
) -> JsonValue:
    """Seeding rate in kg/ha: plants per m^2 x thousand-kernel weight (g) / establishment (%).

    ``establishment_pct`` (above 0, at most 100) is germination x field emergence. The powers of ten cancel:
    g/1000 seeds x 10,000 m^2/ha / 1000 g/kg x 100.
    """
    share = _positive(establishment_pct, "seeding_rate: establishment_pct")
    if share > 100:
        why = f"seeding_rate: establishment_pct is at most 100, not {excerpt(share)}"
        raise ExpressionError(
            why, hint="write seeding_rate(plants_per_m2, tkw_g, establishment_pct)"
        )
    density = _positive(plants_per_m2, "seeding_rate: plants_per_m2")
    return density * _positive(tkw_g, "seeding_rate: tkw_g") / share


def growing_degree_days(t_max_c: JsonValue, t_min_c: JsonValue, t_base_c: JsonValue) -> JsonValue:
    """Growing degree days of one day, max(0, (Tmax + Tmin) / 2 - Tbase), all in degrees C (McMaster & Wilhelm 1997)."""
    warm, cold = number(t_max_c, "gdd: t_max_c"), number(t_min_c, "gdd: t_min_c")
    if warm < cold:
        raise ExpressionError(
            "gdd: t_max_c is below t_min_c", hint="write gdd(t_max_c, t_min_c, t_base_c)"
        )
    return max(0.0, (warm + cold) / 2 - number(t_base_c, "gdd: t_base_c"))


def relative_growth_rate(before: JsonValue, after: JsonValue, days: JsonValue) -> JsonValue:
    """Relative growth rate per day, (ln after - ln before) / days (Blackman 1919; Fisher 1921)."""
    first, last = _positive(before, "rgr: before"), _positive(after, "rgr: after")
    return (math.log(last) - math.log(first)) / _positive(days, "rgr: days")


# --- units ---------------------------------------------------------------------------------------------------------


def convert_unit(value: JsonValue, unit: JsonValue, to: JsonValue) -> JsonValue:
    """Convert ``value`` from ``unit`` to another unit of the table: ``convert(area, 'm^2', 'ha')``."""
    units: list[Unit] = []
    for name in (unit, to):
        known = read_unit(name) if isinstance(name, str) else None
        if known is None:
            hint = f"units: {', '.join(UNITS)}, and composed ones such as m^2, t/ha, kg/m^2"
            raise ExpressionError(f"convert: {excerpt(name)} is no known unit", hint=hint)
        units.append(known)
    first, second = units
    if first.exponents != second.exponents:
        hint = (
            f"{first.symbol} is a unit of {first.dimension}, {second.symbol} of {second.dimension}"
        )
        raise ExpressionError(
            f"convert: {first.symbol} and {second.symbol} do not measure the same thing", hint=hint
        )
    return convert(number(value, "convert"), first.symbol, second.symbol)


# --- separability of classes, choice of bands ----------------------------------------------------------------------


def jeffries_matusita(
    mean_a: JsonValue, cov_a: JsonValue, mean_b: JsonValue, cov_b: JsonValue
) -> JsonValue:
    """Jeffries-Matusita distance of two normally distributed classes, 0 (identical) to 2 (separable).

    JM = 2 (1 - exp(-B)) with the Bhattacharyya distance B (Swain & Davis 1978; Richards 2013, chapter 10). Means are
    lists of n band values, covariances n x n matrices; for one band, mean and variance may be plain numbers.
    """
    first, second = _class_of(mean_a, cov_a, "first"), _class_of(mean_b, cov_b, "second")
    if len(first[0]) != len(second[0]):
        raise ExpressionError(
            f"jm: the classes have {len(first[0])} and {len(second[0])} bands",
            hint="give both the same bands",
        )
    with np.errstate(all="ignore"):
        pooled = (first[1] + second[1]) / 2
        apart = first[0] - second[0]
        log_determinants = [
            _log_determinant(covariance) for covariance in (pooled, first[1], second[1])
        ]
        bhattacharyya = float(apart @ np.linalg.solve(pooled, apart)) / 8
    bhattacharyya += (log_determinants[0] - (log_determinants[1] + log_determinants[2]) / 2) / 2
    if math.isnan(bhattacharyya):
        raise ExpressionError(
            "jm: the numbers are too large", hint="scale means and covariances to reflectance 0..1"
        )
    return -2 * math.expm1(-max(0.0, bhattacharyya)) + 0.0


def _class_of(mean: JsonValue, covariance: JsonValue, which: str) -> tuple[FloatArray, FloatArray]:
    of = f"jm: mean of the {which} class"
    centre = numbers(mean, of) if isinstance(mean, list) else [number(mean, of)]
    rows = covariance if isinstance(covariance, list) else [[covariance]]
    if len(centre) > MAX_BANDS:
        raise ExpressionError(
            f"jm takes at most {MAX_BANDS} bands, not {len(centre)}", hint="use fewer bands"
        )
    matrix = [numbers(row, f"jm: covariance of the {which} class") for row in rows]
    if len(matrix) != len(centre) or any(len(row) != len(centre) for row in matrix):
        why = f"jm: the covariance of the {which} class must have {len(centre)} rows of {len(centre)} numbers"
        raise ExpressionError(why, hint="write it as [[a, b], [b, c]]")
    values = np.array(matrix, dtype=np.float64)
    if not np.allclose(values, values.T, rtol=1e-6, atol=0):
        raise ExpressionError(
            f"jm: the covariance of the {which} class is not symmetric",
            hint="write it as [[a, b], [b, c]]",
        )
    return np.array(centre, dtype=np.float64), values


def _log_determinant(covariance: FloatArray) -> float:
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        hint = "use fewer bands or more pixels per class, and variances above 0 on the diagonal"
        raise ExpressionError("jm: a covariance is not positive definite", hint=hint) from None
    return 2 * float(np.log(np.diagonal(factor)).sum())


def optimum_index_factor(sd: JsonValue, corr: JsonValue) -> JsonValue:
    """Optimum index factor of three bands, sum of standard deviations / sum of |correlations| (Chavez et al. 1982).

    ``sd``: three standard deviations; ``corr``: the three pairwise correlations, or the 3 x 3 correlation matrix.
    """
    deviations = numbers(sd, "oif: sd", least=3)
    pairs = _pair_correlations(corr)
    if len(deviations) != 3 or len(pairs) != 3:
        why = "oif takes three standard deviations and the correlations of the three pairs of bands"
        raise ExpressionError(why, hint="write oif([sd1, sd2, sd3], [r12, r13, r23])")
    if min(deviations) < 0 or max(abs(value) for value in pairs) > 1 + 1e-9:
        why = "oif: a standard deviation is negative or a correlation not from -1 to 1"
        raise ExpressionError(why, hint="write oif([sd1, sd2, sd3], [r12, r13, r23])")
    return _ratio(math.fsum(deviations), math.fsum(abs(value) for value in pairs), "oif")


def _pair_correlations(corr: JsonValue) -> Sequence[Number]:
    if isinstance(corr, list) and corr and isinstance(corr[0], list):
        matrix = [numbers(row, "oif: corr", least=3) for row in corr]
        if len(matrix) == 3 and all(len(row) == 3 for row in matrix):
            return [matrix[0][1], matrix[0][2], matrix[1][2]]
        return cast("list[Number]", [])
    return numbers(corr, "oif: corr", least=3)


_BY_THEIR_NAME: tuple[Function, ...] = (
    ndvi, gndvi, ndre, ndwi, savi, evi, exg, lai_beer, severity, incidence, disease_index, audpc, efficacy_abbott,
    plants_per_ha, seeding_rate,
)  # fmt: skip
AGRONOMIC_FUNCTIONS: dict[str, Function] = {
    **{function.__name__: function for function in _BY_THEIR_NAME},
    "gdd": growing_degree_days,
    "rgr": relative_growth_rate,
    "convert": convert_unit,
    "jm": jeffries_matusita,
    "oif": optimum_index_factor,
}
"""Functions by their name in an expression."""
