"""Tools under the names that published benchmarks give them, with their arguments, defaults and forms of output.

Each is a few lines around a tool of :mod:`agrotools.tools.general`, and can do with each back-end what that tool can.
Names, arguments and forms of output are those of GTA and AgentLego (Apache-2.0; github.com/open-compass/GTA,
github.com/InternLM/agentlego), of ThinkGeo (Apache-2.0; github.com/mbzuai-oryx/ThinkGeo) and of Agent-X (names and
arguments alone). The descriptions are our own.
"""
