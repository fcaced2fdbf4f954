"""Questions written as data, and the things that they are asked of."""

from agrotools.build.templates.template import Template, load_templates
from agrotools.build.templates.thing import Thing

__all__ = ["Template", "Thing", "load_templates"]
