"""Tool contract: a typed function and a decorator.

    @tool(category="measurement", version="1")
    def measure_fruit_size(
        image: ImageFile,
        fx_px: Annotated[float | None, Field(gt=0, description="focal length in x, pixels")] = None,
    ) -> FruitSizes:
        '''Measure the diameter of each fruit in an RGB-D pair.'''

The signature defines the schema for models and the command line. The docstring up to its first section (``Raises:``,
``Source:``...) is the tool description that they see. A tool is checked when it is declared.
"""

import inspect
import json
import os
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import update_wrapper
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType
from typing import Any, Generic, ParamSpec, TypeVar, cast, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError, create_model
from pydantic_core import to_json

from agrotools.calling.arguments import (
    Agree,
    DepthFile,
    FileArgument,
    ImageFile,
    MaskFile,
    RasterFile,
    ReferenceCall,
    Region,
    Resolve,
    Resolver,
    agreement_kind,
    argument_error,
    default_description,
    describe_schema,
    path_in,
    plain_schema,
    takes_path,
)
from agrotools.calling.result import ToolResult
from agrotools.calling.workspace import collect_files, host_file
from agrotools.core import AgreementKind, Arguments, ToolError, ToolSpec
from agrotools.core.libraries import READERS, require_libraries

__all__ = [
    "Agree",
    "DepthFile",
    "FileArgument",
    "ImageFile",
    "MaskFile",
    "RasterFile",
    "Region",
    "Tool",
    "ToolDeclarationError",
    "ToolResult",
    "tool",
]

P = ParamSpec("P")
R = TypeVar("R", bound=ToolResult)

_SECTION = re.compile(
    r"^[A-Z][A-Za-z ]*:\s*$|^(Raises|Source|Sources|References|Example|Examples|Returns):",
    re.MULTILINE,
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_LONGEST_DESCRIPTION = 1024
"""Longest function description, in characters, that endpoints accept."""
_EXTENSIONS = {"image": "jpg", "raster": "tif"}
"""Extensions of the made-up files of examples by kind; ``png`` for depths and masks."""
_LARGEST_EXACT_INTEGER = 2**53
MOST_ELEMENTS = 100_000
"""Largest number of list elements in one argument, counted over all levels; larger arguments are refused first.

Validation reports every wrong element, which would take minutes for millions of them.
"""
DataFiles = Callable[[], Iterable[Path]] | Sequence[str | Callable[[], Iterable[Path]]]
"""Data files of a tool: names of files in the folder ``data`` of its package, and functions that find other files."""


SERVED = "served:"
"""Back-end that every tool has: its calls are made with a tool server, by the binding in the file that is its value."""


class ToolDeclarationError(TypeError):
    """Error in the declaration of a tool, raised when its module is imported."""


Nameable = Callable[[str | None, Arguments], Mapping[str, str] | None]
"""Names that the result of a call may have, as :func:`tool` describes it."""


def tool(
    *,
    category: str,
    version: str = "1",
    significant_digits: int | None = 6,
    backends: tuple[str, ...] = ("offline",),
    data_files: DataFiles = (),
    backend_files: Callable[[str], Iterable[Path]] | None = None,
    cacheable: bool = True,
    files_by_last_part: bool = False,
    resolves: Resolver | None = None,
    expert: Sequence[str] = (),
    example: Mapping[str, JsonValue] | None = None,
    unusable: Callable[[str | None], Mapping[str, Collection[str]]] | None = None,
    nameable: Nameable | None = None,
    libraries: Sequence[str] | None = None,
) -> Callable[[Callable[P, R]], "Tool[P, R]"]:
    """Declare a typed function as a tool.

    Examples:
        >>> from agrotools.calling import ToolResult
        >>> class Area(ToolResult):
        ...     hectares: float
        >>> @at.tool(category="measurement")
        ... def plot_area(length_m: float, width_m: float) -> Area:
        ...     "Calculate the area of a plot."
        ...     return Area(hectares=length_m * width_m / 10_000)

    Args:
        category: ``identification``, ``measurement``, ``segmentation``, ``change``, ``analytics``, ``general`` or
            ``published`` (a tool with the name and arguments that a published benchmark gives it).
        version: increase it whenever the same call may give a different result.
        significant_digits: number of digits to which floats in an observation are rounded; None for no rounding.
        backends: names of the available back-ends, the default first. A name that ends with a colon takes a value:
            the user selects ``pack:`` as ``pack:beans``, and the tool receives that full name.
        data_files: files outside the call that affect the result (for example trained heads): names of files of the
            package, functions that find other files, or one such function.
        backend_files: function from the full name of a back-end with a value to the files it uses. It may raise
            ToolError if the value is not usable.
        cacheable: False if equal calls may give different results, or if running the tool is faster than a cache
            look-up.
        files_by_last_part: True if a path that ends in the name of a listed file refers to that file, as in calls of
            published benchmarks. No other file is opened.
        resolves: function that resolves arguments which do not speak for themselves: aliases, ``auto``, arguments
            overridden by another one. Calls with equal resolved arguments agree. It must be fast and open no file.
        expert: arguments with a default that models are not shown, because few callers need them: settings of the
            method. Every call may give them.
        example: arguments of a short valid call, which models are shown and the error of an invalid call repeats. An
            argument that is a file has the kind of the file as its value: ``image``, ``raster``, ``depth``, ``mask``.
        unusable: function from a back-end (None: the default) to the choices of arguments that cannot work on this
            machine, by argument. Models are not shown them.
        nameable: function from a back-end (None: the default) and the arguments of a call to the names that its result
            may have, each with the label that the recogniser has for it; None if it may have any name. It opens no
            picture. The labels of a benchmark that are none of them are said before a run.
        libraries: modules that the function imports and a plain installation of agrotools lacks. Without them the tool
            is refused before it runs. None: those that read pictures and rasters (the extra ``tools``) if an argument
            is a file, else none.

    Raises:
        ToolDeclarationError: the docstring or the type of an argument is missing, a default does not match its type...
    """

    def declare(function: Callable[P, R]) -> Tool[P, R]:
        return Tool(
            function=function,
            category=category,
            version=version,
            significant_digits=significant_digits,
            backends=backends,
            declared_files=data_files,
            backend_files=backend_files,
            cacheable=cacheable,
            files_by_last_part=files_by_last_part,
            resolver=resolves,
            expert=tuple(expert),
            example=dict(example or {}),
            unusable=unusable,
            nameable=nameable,
            declared_libraries=None if libraries is None else tuple(libraries),
        )

    return declare


@dataclass(eq=False, repr=False)
class Tool(Generic[P, R]):
    """Declared tool. It can be called like the original function, with files given as local paths or in memory."""

    function: Callable[P, R]
    category: str
    version: str
    significant_digits: int | None
    backends: tuple[str, ...]
    declared_files: DataFiles
    backend_files: Callable[[str], Iterable[Path]] | None
    cacheable: bool
    files_by_last_part: bool
    resolver: Resolver | None
    expert: tuple[str, ...]
    example: dict[str, JsonValue]
    unusable: Callable[[str | None], Mapping[str, Collection[str]]] | None
    nameable: Nameable | None
    declared_libraries: tuple[str, ...] | None

    def __post_init__(self) -> None:
        self.name: str = self.function.__name__
        self.doc: str = inspect.cleandoc(self.function.__doc__ or "")
        self._parameters = inspect.signature(self.function).parameters
        if not _NAME.fullmatch(self.name):
            raise ToolDeclarationError(
                f"{self.name}: a tool's name has letters, digits and underscores, 64 at most"
            )
        if not self.category or not self.version or not self.backends:
            raise ToolDeclarationError(
                f"{self.name}: category, version and backends must not be empty"
            )
        if self.backends[0].endswith(":"):
            raise ToolDeclarationError(f"{self.name}: the default back-end cannot take a value")
        types = self._declared_types()
        self.result_type = cast(type[R], types.pop("return"))
        self.takes_files = any(takes_path(annotation) for annotation in types.values())
        self._model = self._argument_model(types)
        self.spec: ToolSpec = self._declared_spec(types)
        self._check_example()
        update_wrapper(self, self.function)

    @property
    def libraries(self) -> tuple[str, ...]:
        """Modules that a call needs and a plain installation of agrotools lacks."""
        if self.declared_libraries is not None:
            return self.declared_libraries
        return READERS if self.takes_files else ()

    def check_libraries(self) -> None:
        """Refuse to run without a library that the tool needs; MissingLibraryError names the command for it."""
        require_libraries(self.name, self.libraries)

    def spec_here(self, backend: str | None) -> ToolSpec:
        """Return the specification without the choices that cannot work on this machine with ``backend``."""
        unusable = self.unusable(backend) if self.unusable else {}
        if not any(unusable.values()):
            return self.spec
        parameters = deepcopy(self.spec.parameters)
        properties = cast("dict[str, dict[str, Any]]", parameters["properties"])
        for name, choices in unusable.items():
            kept = [each for each in properties[name]["enum"] if each not in choices]
            properties[name]["enum"] = kept
        return self.spec.model_copy(update={"parameters": parameters})

    @property
    def target(self) -> str:
        """Import path of the tool, ``package.module:name``."""
        return f"{self.function.__module__}:{self.name}"

    @property
    def data_files(self) -> tuple[Path, ...]:
        """Current files outside the call that affect the result."""
        sources = [self.declared_files] if callable(self.declared_files) else self.declared_files
        return tuple(
            path
            for each in sources
            for path in ([self._packaged(each)] if isinstance(each, str) else each())
        )

    def _packaged(self, name: str) -> Path:
        """Return the path of a file in the folder ``data`` of the package that the tool is in."""
        spec = find_spec(self.function.__module__.partition(".")[0])
        assert spec is not None  # the module is imported
        assert spec.origin is not None
        return Path(spec.origin).parent / "data" / name

    def files_for(self, backend: str | None) -> tuple[Path, ...]:
        """Return files outside the call that ``backend`` (None: the default) reads; ToolError if it is unusable."""
        if backend is not None and backend.startswith(SERVED):
            return (Path(backend.removeprefix(SERVED)),)
        if backend is None or ":" not in backend or self.backend_files is None:
            return self.data_files
        return (*self.data_files, *self.backend_files(backend))

    def has_backend(self, name: str) -> bool:
        """True if ``name`` is a back-end of this tool, including a value if the back-end takes one."""
        kind, colon, value = name.partition(":")
        return (
            f"{kind}:" in (*self.backends, SERVED) and bool(value.strip())
            if colon
            else name in self.backends
        )

    def validate(self, arguments: Arguments) -> Arguments:
        """Return the arguments in canonical form: checked against the schema, defaults filled in, files by name.

        Null for an argument with a default means the default. A whole float counts as an integer, as in JSON Schema;
        nothing else is converted but what :meth:`read` reads. ToolError ``invalid_argument``, with all faults in one
        message.
        """
        model = self._read(arguments, None, zero_is_none=True)[1]
        return model.model_dump(mode="json", by_alias=True)

    def resolve(self, arguments: Arguments, known: ReferenceCall) -> Arguments:
        """Return the :meth:`validate` arguments as the tool interprets them; ToolError if it would refuse the call."""
        valid = self.validate(arguments)
        return valid if self.resolver is None else self.resolver(valid, known)

    def prepare_arguments(self, arguments: Mapping[str, Any], resolve: Resolve) -> dict[str, Any]:
        """Return the arguments for the function, with file names replaced by the paths that ``resolve`` returns."""
        model = self._read(arguments, resolve)[1]
        return {name: getattr(model, name) for name in self._parameters}

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> R: ...
    def __call__(self, *args: Any, **kwargs: Any) -> R:
        """Run the tool in this process.

        Files are given as paths, Pillow images or arrays: uint8 (rows, columns, 3) for pictures, (rows, columns[,
        bands]) of any number type for rasters, masks and depth. ``out`` (keyword): folder for the artifacts, and for
        GeoTIFF and GeoJSON maps if a raster of the call is georeferenced; None (default): nothing is written, and the
        result holds the contents.

        Raises:
            MissingLibraryError: the tool needs the extra ``tools``, which is not installed.
            ToolError: the arguments are invalid, a file does not exist or cannot be read, or the tool itself fails.
        """
        self.check_libraries()
        names = list(self._parameters)
        if len(args) > len(names):
            raise ToolError(
                "invalid_argument", f"{self.name} takes {len(names)} arguments, got {len(args)}"
            )
        arguments = dict(zip(names, args, strict=False))
        if twice := arguments.keys() & kwargs.keys():
            raise ToolError("invalid_argument", f"{', '.join(sorted(twice))} given twice")
        arguments |= kwargs
        out = None if "out" in names else arguments.pop("out", None)
        folder = None if out is None else Path(out)
        with ExitStack() as stack:
            given = self._with_written_arrays(arguments, stack)
            values = self.prepare_arguments(given, host_file)
            contents, paths, layers = stack.enter_context(collect_files(folder))
            result = self.function(**values)  # pyright: ignore[reportCallIssue]
            if not isinstance(result, ToolResult):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(
                    f"{self.name} returned an object of type {type(result).__name__}, not a ToolResult"
                )
            result.attach_files(contents, paths)
            if folder is not None:
                from agrotools.calling.maps import save_maps

                rasters = [value for value in values.values() if isinstance(value, Path)]
                save_maps(result, layers, rasters, values.get("region"))
                result.attach_files(contents, paths)
        return result

    def _with_written_arrays(
        self, arguments: Mapping[str, Any], stack: ExitStack
    ) -> Mapping[str, Any]:
        """Return the arguments with pictures and arrays in memory replaced by files that last as long as ``stack``."""
        files = {name for name in arguments if self.spec.agreement.get(name) == "file"}
        if all(isinstance(arguments[name], (str, os.PathLike, NoneType)) for name in files):
            return arguments
        from agrotools.calling.pictures import write_arrays

        return write_arrays(
            arguments,
            files,
            lambda: Path(stack.enter_context(TemporaryDirectory(prefix="agrotools-"))),
        )

    def __repr__(self) -> str:
        return f"<tool {self.name}({', '.join(self._parameters)})>"

    def read(self, arguments: Arguments) -> Arguments:
        """Return the arguments with those read as JSON that are text where the tool takes none: ``"[0, 0, 9, 9]"``,
        ``"0.02"``, ``"null"``; an optional one that must not be empty, but is, is null, and one that must be above 0,
        but is 0: models fill in every argument that they are shown. Arguments that are not valid even then are returned
        as they are."""
        try:
            return self._read(arguments, None, zero_is_none=True)[0]
        except ToolError:
            return arguments

    def _read(
        self,
        arguments: Mapping[str, Any],
        resolve: Resolve | None,
        *,
        zero_is_none: bool = False,
    ) -> tuple[dict[str, Any], BaseModel]:
        """Return the arguments as they are read, and the model of them.

        ``zero_is_none``: a 0 that an optional argument does not allow is null. People who write 0 get the error.
        """
        for name, value in arguments.items():
            if _has_too_many_elements(value):
                message = f"{name} holds more than {MOST_ELEMENTS:,} elements"
                raise ToolError(
                    "invalid_argument", message, argument=name, hint="pass shorter lists"
                )
        read = dict(arguments)
        while True:
            try:
                return read, self._validated(read, resolve)
            except ValidationError as found:
                before = read
                if zero_is_none:
                    read = _without_zeros(read, found, self.spec.defaults)
                if read is before:
                    read = _read_texts(read, found, self.spec.defaults)
                if read is before:
                    raise argument_error(self.spec, read, self._in_words, found) from None

    def _validated(self, arguments: Mapping[str, Any], resolve: Resolve | None) -> BaseModel:
        try:
            given = {
                name: _json_numbers(value)
                for name, value in arguments.items()
                if value is not None or name not in self.spec.defaults
            }
            encoded = to_json(given, inf_nan_mode="constants", fallback=_encodable)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ToolError(
                "invalid_argument", f"the arguments are not plain JSON data: {error}"
            ) from None
        return self._model.model_validate_json(encoded, strict=True, context={"resolve": resolve})

    def _declared_types(self) -> dict[str, Any]:
        try:
            types = get_type_hints(self.function, include_extras=True)
        except NameError as error:
            raise ToolDeclarationError(f"{self.name}: {error}") from error
        if not self.doc:
            raise ToolDeclarationError(f"{self.name}: a docstring must say what the tool does")
        result = types.get("return")
        if not (isinstance(result, type) and issubclass(result, ToolResult)):
            raise ToolDeclarationError(f"{self.name}: the return type must be a ToolResult")
        for name, parameter in self._parameters.items():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise ToolDeclarationError(f"{self.name}: {parameter} cannot be given by name")
            if name not in types:
                raise ToolDeclarationError(f"{self.name}: argument {name} has no type")
        return types

    def _argument_model(self, types: Mapping[str, Any]) -> type[BaseModel]:
        fields: dict[str, Any] = {
            name: (types[name], ... if parameter.default is parameter.empty else parameter.default)
            for name, parameter in self._parameters.items()
        }
        config = ConfigDict(extra="forbid", protected_namespaces=())
        with warnings.catch_warnings():
            # An argument may share its name with an attribute of pydantic (register); the fields still hold the values.
            warnings.filterwarnings(
                "ignore", message="Field name .* shadows an attribute", category=UserWarning
            )
            return create_model(self.name, __config__=config, **fields)

    def _declared_spec(self, types: Mapping[str, Any]) -> ToolSpec:
        try:
            parameters = plain_schema(self._model.model_json_schema())
        except ValueError as error:
            raise ToolDeclarationError(f"{self.name}: {error}") from error
        parameters.pop("description", None)
        properties: dict[str, dict[str, Any]] = parameters.setdefault("properties", {})
        agreement: dict[str, AgreementKind] = {}
        defaults: dict[str, JsonValue] = {}
        for name, schema in properties.items():
            if description := schema.get("description") or default_description(types[name]):
                schema["description"] = description
            kind = agreement_kind(types[name])
            if kind is None:
                raise ToolDeclarationError(
                    f"{self.name}: argument {name} needs an agreement rule: add Agree(...) to its type"
                )
            agreement[name] = kind
            if (default := self._parameters[name].default) is not inspect.Parameter.empty:
                defaults[name] = self._checked_default(name, types[name], default)
        if unknown := [name for name in self.expert if name not in defaults]:
            raise ToolDeclarationError(
                f"{self.name}: {', '.join(unknown)} cannot be left to experts: no argument with a default"
            )
        self._in_words = {
            name: "the name of a file"
            if agreement[name] == "file" and schema["type"] == "string"
            else describe_schema(schema)
            for name, schema in properties.items()
        }
        return ToolSpec(
            name=self.name,
            category=self.category,
            version=self.version,
            description=self._description(),
            parameters=parameters,
            agreement=agreement,
            defaults=defaults,
            expert=self.expert,
            example=self._example_on_files(agreement),
        )

    def _example_on_files(self, agreement: Mapping[str, AgreementKind]) -> dict[str, JsonValue]:
        """Return the example with names of files in place of their kinds, such as ``image_1.jpg``."""
        call: dict[str, JsonValue] = {}
        used = Counter[str]()
        for name, value in self.example.items():
            if agreement.get(name) == "file" and isinstance(value, str):
                used[value] += 1
                value = f"{value}_{used[value]}.{_EXTENSIONS.get(value, 'png')}"
            call[name] = value
        return call

    def _check_example(self) -> None:
        if not self.example:
            return
        try:
            self.validate(self.example)
        except ToolError as error:
            raise ToolDeclarationError(
                f"{self.name}: the example is no valid call: {error}"
            ) from error

    def _checked_default(self, name: str, annotation: Any, default: Any) -> JsonValue:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        try:
            adapter.validate_json(to_json(default), strict=True)
        except ValidationError as found:
            raise ToolDeclarationError(
                f"{self.name}: the default of {name} is not of its type: {found}"
            ) from found
        return adapter.dump_python(default, mode="json")

    def _description(self) -> str:
        section = _SECTION.search(self.doc)
        text = self.doc[: section.start()] if section else self.doc
        paragraphs = [
            " ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text.strip())
        ]
        description = "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
        if not description:
            raise ToolDeclarationError(
                f"{self.name}: the docstring must begin with what the tool does"
            )
        if len(description) > _LONGEST_DESCRIPTION:
            shortened = textwrap.shorten(description, 60)
            raise ToolDeclarationError(
                f"{self.name}: the docstring before its first section has {len(description)} characters, "
                f"{_LONGEST_DESCRIPTION} at most: {shortened}"
            )
        return description


_TAKES_TEXT = frozenset(
    {"literal_error", "string_too_long", "string_too_short", "file_name", "extra_forbidden"}
)
"""Types of errors about a text where a text is taken."""
_EMPTY = ("", [], {})
"""Values that models give for an optional argument instead of leaving it out, where the tool takes no such value."""
_BELOW_RANGE = frozenset({"greater_than", "greater_than_equal"})
"""Types of errors about a number that is too small."""
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}


def _without_zeros(
    arguments: dict[str, Any], found: ValidationError, defaults: Arguments
) -> dict[str, Any]:
    """Return a copy without the optional arguments that are 0 below their range; the same if there are none."""
    zeros = {
        path[0]
        for error in found.errors(include_url=False)
        if error["type"] in _BELOW_RANGE
        and len(path := path_in(arguments, error)) == 1
        and path[0] in defaults
        and error["input"] == 0
    }
    if not zeros:
        return arguments
    return {name: None if name in zeros else value for name, value in arguments.items()}


def _read_texts(
    arguments: dict[str, Any], found: ValidationError, defaults: Arguments
) -> dict[str, Any]:
    """Return a copy in which texts at fault are read as JSON, and empty ones as null; the same if nothing changes.

    Null is for an argument with a default only.
    """
    read = arguments
    for error in found.errors(include_url=False):
        path, given = path_in(arguments, error), error["input"]
        texts = given if error["type"] == "region" and isinstance(given, list) else [given]
        is_optional = len(path) == 1 and path[0] in defaults
        if is_optional and given in _EMPTY:
            value = None
        elif (
            not path
            or error["type"] in _TAKES_TEXT
            or not any(isinstance(text, str) for text in texts)
        ):
            continue
        else:
            value = [*map(_loaded, given)] if texts is given else _loaded(given)
        if value != given and (value is not None or is_optional):
            inner: Any = (read := deepcopy(arguments) if read is arguments else read)
            for part in path[:-1]:
                inner = inner[part]
            inner[path[-1]] = value
    return read


def _loaded(value: Any) -> Any:
    """Return the value of a text that is JSON, or ``True``, ``False`` or ``None`` as in Python; else ``value``."""
    with suppress(ValueError, RecursionError):
        return (
            json.loads(_PYTHON_WORDS.get(value.strip(), value)) if isinstance(value, str) else value
        )
    return value


def _has_too_many_elements(value: Any) -> bool:
    left, open_values = MOST_ELEMENTS, [value]
    while open_values:
        item = open_values.pop()
        has_items = isinstance(item, (list, tuple, set, frozenset, Mapping))
        size: Any = len(item) if has_items else getattr(item, "size", 0)  # of an array
        left -= size if isinstance(size, int) else 0
        if left < 0:
            return True
        if has_items:
            open_values.extend(item.values() if isinstance(item, Mapping) else item)
    return False


def _json_numbers(value: Any) -> Any:
    """Convert whole floats to integers, as in JSON Schema, and integers beyond 64 bits to floats."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_EXACT_INTEGER:
        return int(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    if isinstance(value, dict):
        return {key: _json_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_numbers(item) for item in value]
    return value


def _encodable(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):  # numpy arrays and scalars, without importing numpy
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} object cannot be passed to a tool")
