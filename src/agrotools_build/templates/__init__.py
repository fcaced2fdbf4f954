"""Question templates, and the measured things to which they apply."""

from agrotools_build.templates.template import Template, load_templates
from agrotools_build.templates.thing import Thing

__all__ = ["Template", "Thing", "load_templates"]
